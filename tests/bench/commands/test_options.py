"""What measurements take and give alike, and what each refuses before it measures anything."""

import pytest
from click.testing import CliRunner

from bench.__main__ import bench_group
from bench.commands.ingest import parse_formats, parse_sizes
from bench.commands.options import names, numbers
from bench.commands.packing import parse_names
from bench.commands.scale import parse_group_sizes
from bench.group_scale import GroupSize
from kgs_core.config.rule.value_formats import FORMATS
from kgs_core.errors import ConfigError
from kgs_core.packing import ALGORITHMS


def test_parts_of_a_list_count_once_but_where_two_lists_go_in_pairs():
    assert parse_sizes("16, 1,5,1") == (1.0, 5.0, 16.0)
    assert names("--store", "s3, disk,s3", ("disk", "s3")) == ("s3", "disk")
    assert parse_formats("avro, raw,avro") == ("avro", "raw")
    assert parse_formats("all") == tuple(FORMATS)
    assert parse_names(("mwf, bfd", "mwf")) == ("mwf", "bfd")
    assert parse_names(()) == tuple(ALGORITHMS)
    assert parse_group_sizes("1000, 10000", "100,1000") == [GroupSize(1000, 100), GroupSize(10000, 1000)]
    assert parse_group_sizes("10,20", "5,5") == [GroupSize(10, 5), GroupSize(20, 5)]


@pytest.mark.parametrize(
    ("read", "wrong"),
    [
        (lambda: parse_sizes("1,zero,0,nan,2000"), ["zero", "0", "nan", "2000"]),
        (lambda: numbers("--sizes", "10,many,0,\u0661", 1000), ["many", "0", "\u0661"]),
        (lambda: names("--store", "s3,tape,", ("disk", "s3")), ["tape", ""]),
        (lambda: parse_names(("magic,mwf", "search@0")), ["magic", "search@0"]),
    ],
)
def test_every_wrong_part_is_named(read, wrong):
    with pytest.raises(ConfigError) as refused:
        read()
    assert [problem.split("'")[1] for problem in refused.value.problems] == wrong


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("packing --sizes 10,many,0", "--sizes: 'many': write numbers from 1 to 1000000"),
        ("packing --algorithm magic", "--algorithm: 'magic': write nf, "),
        ("packing --plot scale.gif", "--plot: scale.gif: name a file that ends in .svg or .png"),
        ("packing --json no-such-folder/x.json", "--json: no-such-folder/x.json: its folder does not exist"),
        ("ingest --processor arrow,spark", "--processor: 'spark': write arrow, dataframe"),
        ("ingest --format avro,xml", "--format: 'xml': write raw, "),
        ("outage --kinds frozen,frosty", "--kinds: 'frosty': write killed, frozen"),
        ("outage --brokers 3,9", "--brokers: '9': write numbers from 1 to 5"),
        ("scale --partitions 0 --consumers 1", "--partitions: '0': "),
        ("scale --partitions 10 --consumers 10000", "--consumers: '10000': "),
        ("scale --partitions 10,20 --consumers 1", "--consumers: 1 numbers for 2 of --partitions: give as many"),
        ("lake --commit later", "--commit: 'later': write direct, combined, auto"),
    ],
)
def test_what_cannot_be_is_refused(arguments, message):
    result = CliRunner().invoke(bench_group, arguments.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {message}")
