"""`kgs bill`: of a recorded load without a group, of a month from bills that are kept, and what it refuses."""

import json
from random import Random

import pytest
from click.testing import CliRunner

from kgs_core.cli.main import cli
from kgs_core.config.file import load_settings
from kgs_core.errors import TransientError
from kgs_core.group.view.group_view import GroupView
from kgs_core.lake.topics.kept_bills import KeptBills
from kgs_core.planning.group import Group
from kgs_core.runtime import bill as bills
from tests.configuration import text_of

CONFIG = text_of(lake="{root: lake}")


@pytest.fixture
def here(here, monkeypatch):
    monkeypatch.setattr(bills, "load_group", lambda _: (Group(), 0.0, GroupView()))
    random = Random(1)
    lines = [
        {"time": 60 * n, "speeds": {"t": {str(p): random.randint(0, 60) for p in range(12)}}} for n in range(30)
    ]  # fmt: skip
    (here / "week.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (here / "kgs.yaml").write_text(CONFIG)
    (here / "lake").mkdir()
    return here


def run(*arguments):
    return CliRunner().invoke(cli, ["bill", *map(str, arguments)])


def test_a_recorded_load_is_billed_without_a_group(here):
    (here / "kgs.yaml").unlink()
    done = run("--from", "week.jsonl", "--capacity", 100, "--price", 2, "--json", "--plot", "week.svg")
    assert (done.exit_code, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert [row["name"] for row in found["compared"]] == ["search", "kafka", "keda", "mwf", "least"]
    assert found["used_consumer_hours"] is found["moves"] is None
    assert found["compared_s"] == 30 * 60
    for row in found["compared"]:
        assert row["cost"] == pytest.approx(2 * row["consumer_hours"], abs=1e-5)
    assert "<svg" in (here / "week.svg").read_text()
    assert run("--from", "week.jsonl", "--capacity", 100, "--price", 2, "--json").stdout == done.stdout


def test_the_table_says_what_is_not_known(here):
    text = run("--from", "week.jsonl", "--capacity", 100).stdout
    assert "! the price of a consumer is unknown: set bill.price_per_consumer_hour, or give --price" in text
    assert "cost" not in text.splitlines()[3]


def test_the_price_of_the_configuration_counts(here):
    (here / "kgs.yaml").write_text(CONFIG + "bill: {price_per_consumer_hour: 0.25 EUR}\n")
    found = json.loads(run("--from", "week.jsonl", "--json").stdout)
    assert (found["price_per_consumer_hour"], found["currency"]) == (0.25, "EUR")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--day", "2026-11-15", "--month", "2026-11"), "--month: not together with --day: give one of them"),
        (("--until", "2026-11-15"), "--until: needs --since"),
        (("--since", "2026-11-15", "--keep"), "--keep: keeps whole days"),
        (("--day", "15.11."), "--day: '15.11.': write a day as 2026-11-15"),
        (("--month", "November"), "--month: 'November': write a month as 2026-11"),
        (("--month", "2999-01"), "--month: 2999-01: has not begun yet"),
        (("--day", "2999-01-01"), "has not begun yet: name a time that has"),
        (("--since", "2026-11-15", "--until", "2026-11-14"), "is an empty period"),
        (("--plot", "week.txt"), "--plot: week.txt: name a file that ends in .svg or .png"),
        (("--from", "none.jsonl"), "none.jsonl: no such file or directory: name another file"),
    ],
)
def test_what_cannot_be_is_one_line(here, arguments, said):
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr


def test_a_load_without_any_speed_is_refused(here):
    (here / "empty.jsonl").write_text('{"time": 1, "speeds": {}}\n')
    done = run("--from", "empty.jsonl")
    assert (done.exit_code, "no measurement has the speed of a partition" in done.stderr) == (2, True)


def kept(here, day, **more):
    from datetime import date

    values = {
        "since": f"{day}T00:00:00Z", "used_consumer_hours": 24.0, "used_cost": 1.2, "known_s": 86_400.0,
        "compared_s": 86_400.0, "moves": None, "compared": [{"name": "kafka", "consumer_hours": 72.0}],
    }  # fmt: skip
    return KeptBills(load_settings(here / "kgs.yaml", {})).keep(date.fromisoformat(day), {**values, **more})


@pytest.fixture
def topics_forgot(monkeypatch):
    def nothing(settings, asked, now_ms, terms):
        return bills.Bill("g", asked, True, 1.0, terms.price)

    monkeypatch.setattr(bills, "bill_of_group", nothing)


@pytest.mark.usefixtures("topics_forgot")
def test_a_month_is_made_of_bills_that_are_kept_and_unknown_days_stay_unknown(here):
    assert kept(here, "2026-01-02")
    assert kept(here, "2026-01-04", used_consumer_hours=None, known_s=0.0)
    done = run("--month", "2026-01", "--plot", "month.png")
    assert done.exit_code == 0, done.output
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert rows["2026-01-02"] == ["24.0", "72.0", "1.20", "?", "?", "100", "%"]
    assert rows["2026-01-03"] == ["?", "?", "?", "?", "?", "0", "%"]
    assert rows["2026-01-04"][:2] == ["?", "72.0"]
    assert (here / "month.png").read_bytes().startswith(b"\x89PNG")


def test_a_bill_that_knows_less_does_not_replace_one_that_knows_more(here):
    assert kept(here, "2026-01-02")
    assert not kept(here, "2026-01-02", known_s=4000.0)
    assert not kept(here, "2026-01-02", compared_s=0.0)
    assert kept(here, "2026-01-02", used_consumer_hours=25.0)
    (file,) = (here / "lake/_kgs_bills/g").iterdir()
    assert json.loads(file.read_text())["used_consumer_hours"] == 25.0


@pytest.mark.usefixtures("topics_forgot")
def test_a_kept_file_that_is_no_bill_is_named_and_can_be_made_anew(here):
    kept(here, "2026-01-02")
    (file,) = (here / "lake/_kgs_bills/g").iterdir()
    file.write_text("[]")
    kept(here, "2026-01-03")
    done = run("--month", "2026-01")
    assert (done.exit_code, "2026-01-02.86400-86400.json: is not a bill" in done.stderr) == (1, True)
    assert "2026-01-03" in done.stdout
    assert kept(here, "2026-01-02")


def test_days_that_are_kept_are_shown_while_kafka_is_away(here, monkeypatch):
    asked = []

    def away(settings, asked_for, now_ms, terms):
        asked.append(asked_for)
        raise TransientError("Kafka nowhere: no answer")

    monkeypatch.setattr(bills, "bill_of_group", away)
    kept(here, "2026-01-31")
    done = run("--month", "2026-01")
    assert (done.exit_code, len(asked)) == (1, 1)
    assert done.stdout.splitlines()[-2].split()[:2] == ["2026-01-31", "24.0"]
    assert done.stderr == "2026-01-01 and other days that are not kept: Kafka nowhere: no answer\n"
