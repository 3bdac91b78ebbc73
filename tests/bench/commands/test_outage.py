"""`bench outage`: its table and what it refuses, without a broker."""

import pytest
from click.testing import CliRunner

from bench.commands.outage import bench_outage, print_outages
from bench.outage import OutageFigures
from kgs_core.errors import ConfigError


def test_what_is_no_outage_and_no_size_is_refused_with_those_that_are():
    with pytest.raises(ConfigError) as refused:
        CliRunner().invoke(bench_outage, ["--kinds", "frozen,frosty", "--brokers", "3,9"], catch_exceptions=False)
    assert "'frosty': use killed, frozen" in str(refused.value)
    assert "--brokers: '9': use 1 to 5" in str(refused.value)


def test_a_row_for_each_outage_with_the_figures_of_each_reader(capsys):
    times = tuple(float(n) for n in range(1, 21))
    found = [OutageFigures(3, "black in", reader, times) for reader in ("kgs", "Java")]
    print_outages(found)
    assert capsys.readouterr().out.split("\n")[1].split() == ["3", "black", "in", *2 * ["11.0", "20.0", "20.0"]]
    assert found[0].to_dict()["p50_s"] == 11.0
