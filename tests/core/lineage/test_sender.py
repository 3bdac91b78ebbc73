"""A consumer's lineage at a backend that takes it, refuses it, hangs, is away, or is none."""

import logging
import sys
import time

import pyarrow as pa
import pytest

from kgs_core.lineage import sender
from kgs_core.lineage.events import table_name
from kgs_core.lineage.sender import MOST_WAITING, ConsumerLineage
from tests.configuration import settings_of
from tests.lineage_server import LineageServer
from tests.waiting import wait_until

RUN = "0193a1f2-7c00-4000-8000-000000000001"
ORDERS = pa.schema([("id", pa.int64()), ("items", pa.list_(pa.struct([("sku", pa.string())])))])
MORE = ORDERS.append(pa.field("tags", pa.map_(pa.string(), pa.int32())))
SECTIONS = {
    "kafka": {"bootstrap_servers": "b1:9092,b2:9092"},
    "lake": {"root": "s3://bucket/lake"},
    "topics": [{"topic": "orders", "table": "bronze/orders"}],
}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(sender, "NEWS_S", 0.0)
    for name in ("URL", "CONFIG", "API_KEY", "NAMESPACE", "DISABLED"):
        monkeypatch.delenv(f"OPENLINEAGE_{name}", raising=False)


@pytest.fixture
def server():
    with LineageServer() as server:
        yield server


@pytest.fixture
def at(monkeypatch, tmp_path):
    """Lineage of a consumer whose environment names a configuration of OpenLineage's client for this server."""

    def lineage(server):
        file = tmp_path / "openlineage.yml"
        auth = "{type: api_key, api_key: s3cret}"
        file.write_text(
            f"transport: {{type: http, url: '{server.url}', auth: {auth}, timeout: 60, retry: {{total: 0}}}}"
        )
        monkeypatch.setenv("OPENLINEAGE_CONFIG", str(file))
        return ConsumerLineage(settings_of(**SECTIONS), RUN)

    return lineage


def seen(lineage, schema=ORDERS):
    lineage.saw([("orders", "bronze/orders", schema)])


def test_one_life_is_start_the_tables_with_their_columns_and_complete(server, at, monkeypatch):
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "shop")
    lineage = at(server)
    with lineage.running():
        for _ in range(5):  # rounds
            seen(lineage)
        seen(lineage, pa.schema(list(ORDERS)))  # equal columns are no news
        seen(lineage, MORE)
    assert [event["eventType"] for event in server.events] == ["START", "RUNNING", "RUNNING", "COMPLETE"]
    assert {event["run"]["runId"] for event in server.events} == {RUN}
    assert set(server.authorizations) == {"Bearer s3cret"}
    first, second = server.events[1:3]
    assert (first["job"]["namespace"], first["job"]["name"]) == ("shop", "g")
    (topic,), (table,) = first["inputs"], first["outputs"]
    assert (topic["namespace"], topic["name"]) == ("kafka://b1:9092", "orders")
    assert (table["namespace"], table["name"]) == ("s3://bucket", "lake/bronze/orders")
    fields = second["outputs"][0]["facets"]["schema"]["fields"]
    assert [field["name"] for field in fields] == ["id", "items", "tags"]
    assert fields[1]["fields"][0]["fields"][0]["name"] == "sku"
    assert server.events[-1]["outputs"] == second["outputs"]
    assert lineage.lost == 0


def test_a_consumer_that_fails_says_why_and_ends_once(server, at):
    lineage = at(server)
    with pytest.raises(ValueError, match="gone"), lineage.running():
        raise ValueError("the store is gone")
    assert [event["eventType"] for event in server.events] == ["START", "FAIL"]
    assert server.events[1]["run"]["facets"]["errorMessage"]["message"] == "the store is gone"
    watched = at(server)
    with watched.running():
        watched.failed("stuck")  # the watchdog's word
    assert [event["eventType"] for event in server.events[2:]] == ["START", "FAIL"]


def test_many_tables_at_once_are_one_event(server, at, monkeypatch):
    monkeypatch.setattr(sender, "NEWS_S", 60.0)
    lineage = at(server)
    with lineage.running():
        lineage.saw([(f"t{n}", f"t{n}", ORDERS) for n in range(300)])
    assert [len(event["outputs"]) for event in server.events] == [0, 300, 300]


def test_a_backend_that_refuses_loses_events_which_is_said_once(server, at, caplog):
    server.status = 500
    lineage = at(server)
    with caplog.at_level(logging.INFO, logger="kgs_core"), lineage.running():
        seen(lineage)
        wait_until(lambda: lineage.lost == 2, 5.0, "both are refused")
        server.status = 201
    said = [record.message for record in caplog.records if record.message.startswith("lineage")]
    assert len([line for line in said if "events are lost: " in line]) == 1
    assert "lineage: events arrive again, 2 are lost" in said
    assert [event["eventType"] for event in server.events] == ["COMPLETE"]


def test_tables_that_were_lost_are_told_again(server, at, monkeypatch):
    """A consumer lives for weeks: without them the backend would know of nothing until it ends."""
    server.status = 500
    lineage = at(server)
    with lineage.running():
        seen(lineage)
        wait_until(lambda: lineage.lost == 2, 5.0, "both are refused")
        server.status = 201
        seen(lineage)  # too early
        monkeypatch.setattr(sender, "AGAIN_S", 0.0)
        lineage.saw([("more", "bronze/more", ORDERS)])
        wait_until(lambda: server.events, 5.0, "they arrive")
        for _ in range(3):  # rounds
            seen(lineage)
    kinds = [(event["eventType"], len(event["outputs"])) for event in server.events]
    assert kinds == [("RUNNING", 2), ("COMPLETE", 2)]


def test_one_that_hangs_holds_up_nothing(server, at, caplog):
    server.status = None
    lineage = at(server)
    began = time.monotonic()
    with lineage.running():
        for n in range(3 * MOST_WAITING):
            seen(lineage, ORDERS.append(pa.field(f"c{n}", pa.int8())))
        assert time.monotonic() - began < 1
    assert time.monotonic() - began < sender.LAST_WORD_S + 2
    assert "events of this consumer are lost" in caplog.text


def test_one_that_is_away_holds_up_nothing(server, at, caplog):
    server.close()
    lineage = at(server)
    with lineage.running():
        seen(lineage)
    assert lineage.lost == 3
    assert "s3cret" not in caplog.text


def test_without_the_package_one_line_is_said(server, at, caplog, monkeypatch):
    monkeypatch.setitem(sys.modules, "openlineage", None)
    lineage = at(server)
    with lineage.running():
        seen(lineage)
    assert caplog.text.count("pip install 'kgs[lineage]'") == 1
    assert server.asked == 0


def test_an_address_alone_is_enough_and_without_any_nothing_is_sent(server, monkeypatch):
    off = ConsumerLineage(settings_of(**SECTIONS), RUN)
    monkeypatch.setenv("OPENLINEAGE_URL", server.url)
    with off.running():
        seen(off)
        off.failed("x")
    assert server.asked == 0
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "theirs")
    with ConsumerLineage(settings_of(**SECTIONS), RUN).running():
        pass
    assert [event["job"]["namespace"] for event in server.events] == ["theirs", "theirs"]


def test_tables_are_named_by_their_store():
    assert table_name("s3://b", "t") == ("s3://b", "t")
    assert table_name("/lake", "bronze/t") == ("file", "/lake/bronze/t")
