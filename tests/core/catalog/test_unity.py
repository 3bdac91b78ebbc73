"""Tables in Unity Catalog: a server that is late, fails, lies, forgets, hangs, or has another's table already."""

import json
import time
from pathlib import Path

import pyarrow as pa
import pytest

from kgs_core.catalog.catalog import Registration
from kgs_core.catalog.unity import UnityCatalog, open_unity
from kgs_core.config import catalog as catalog_settings
from kgs_core.config.settings import CatalogSettings
from kgs_core.errors import ConfigError, PermanentError, TransientError
from tests.core.catalog.entries import KINDS, entry
from tests.dripping_server import ENDLESS, dripping_server
from tests.unity_server import UnityServer, hang

MORE = {**KINDS, "more": pa.list_(pa.map_(pa.string(), pa.struct([("x", pa.int32())])))}


@pytest.fixture
def server():
    with UnityServer() as server:
        yield server


def opened(server, **more) -> UnityCatalog:
    given = {"kind": "unity", "url": server.url, "name": "main.{folder}.{last}", **more}
    return open_unity(None, CatalogSettings.model_validate(given))


@pytest.fixture
def catalog(server):
    found = opened(server)
    yield found
    found.close()


def test_a_new_table_is_made_once_with_its_schema_and_every_type(server, catalog):
    assert catalog.register(entry()) is Registration.CREATED
    assert server.schemas == {"main.default", "main.bronze"}
    found = server.tables["main.bronze.orders"]
    assert (found["storage_location"], found["comment"]) == ("s3://lake/bronze/orders", "orders of the shop")
    columns = {c["name"]: c for c in found["columns"]}
    assert columns["id"]["comment"] == "number of the order"
    assert (columns["price"]["type_precision"], columns["price"]["type_scale"]) == (10, 2)
    assert columns["day"]["partition_index"] == 0
    assert {name: c["type_text"] for name, c in columns.items()} == {
        "id": "bigint", "small": "smallint", "tiny": "tinyint", "n": "int", "price": "decimal(10,2)", "day": "date",
        "at": "timestamp", "tags": "map<string,int>", "items": "array<struct<sku:string,sizes:array<double>>>",
        "raw": "binary", "ok": "boolean",
    }  # fmt: skip
    questions = len(server.asked)
    assert catalog.register(entry()) is Registration.UNCHANGED
    assert len(server.asked) == questions + 1


def test_columns_that_became_more_are_changed_and_what_people_wrote_stays(server, catalog):
    catalog.register(entry())
    server.tables["main.bronze.orders"]["columns"][1]["comment"] = "by hand"
    assert catalog.register(entry(kinds=MORE)) is Registration.UPDATED
    columns = server.tables["main.bronze.orders"]["columns"]
    assert [c["name"] for c in columns] == [*MORE]
    assert columns[1]["comment"] == "by hand"
    assert json.loads(columns[-1]["type_json"])["type"]["elementType"]["keyType"] == "string"
    assert catalog.register(entry(kinds=MORE)) is Registration.UNCHANGED


def test_a_server_that_cannot_change_columns_is_left_as_it_is(server, catalog):
    catalog.register(entry())
    server.has_delta_api = False
    assert catalog.register(entry(kinds=MORE)) is Registration.OUTDATED
    assert len(server.tables["main.bronze.orders"]["columns"]) == len(KINDS)


def test_columns_that_somebody_else_changes_at_the_same_time_are_left_to_the_next_run(server, catalog):
    catalog.register(entry())

    def meddle(method, path):
        if method == "POST":
            server.tables["main.bronze.orders"]["updated_at"] += 1

    server.before = meddle
    with pytest.raises(TransientError, match="UpdateRequirementConflictException"):
        catalog.register(entry(kinds=MORE))
    server.before = lambda *_: None
    assert catalog.register(entry(kinds=MORE)) is Registration.UPDATED


@pytest.mark.parametrize("other", ["s3://lake/bronze/orders2", "s3://lake/bronze", None])
def test_another_table_of_the_same_name_is_refused_in_words_and_left(server, catalog, other):
    server.tables["main.bronze.orders"] = {"storage_location": other, "data_source_format": "DELTA", "columns": []}
    with pytest.raises(PermanentError, match=r"another table there, at .* drop that one, or change catalog.name"):
        catalog.register(entry())
    assert server.tables["main.bronze.orders"]["columns"] == []
    assert len(server.asked) == 1


def test_a_table_in_another_format_at_the_same_place_is_refused(server, catalog):
    place = {"storage_location": "s3a://lake//bronze/orders/", "data_source_format": "PARQUET"}
    server.tables["main.bronze.orders"] = place
    with pytest.raises(PermanentError, match="as PARQUET, not DELTA"):
        catalog.register(entry())


def test_two_at_once_make_one(server, catalog):
    other = opened(server)

    def faster(method, path):
        if method == "POST" and path == "/tables":
            server.before = lambda *_: None
            assert other.register(entry()) is Registration.CREATED

    server.before = faster
    assert catalog.register(entry()) is Registration.UNCHANGED
    other.close()


def test_a_lost_reply_is_no_second_table(server, catalog):
    server.schemas.add("main.bronze")
    server.lost_replies = 1
    with pytest.raises(TransientError, match="does not answer"):
        catalog.register(entry())
    assert catalog.register(entry()) is Registration.UNCHANGED


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_what_may_pass_is_no_refusal(server, catalog, status):
    server.before = lambda *_: (status, {"error_code": "INTERNAL", "message": "down"})
    with pytest.raises(TransientError, match="fails: down"):
        catalog.register(entry())
    server.before = lambda *_: None
    assert catalog.register(entry()) is Registration.CREATED


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n{", b"nonsense\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n"]
)
def test_half_an_answer_is_none(server, catalog, answer):
    server.before = lambda *_: answer
    with pytest.raises(TransientError):
        catalog.register(entry())


@pytest.mark.parametrize("answer", [(200, []), (404, {}), (301, {}), (200, {"columns": 3}), (404, {"error": 3})])
def test_another_server_makes_nothing(server, catalog, answer):
    server.before = lambda *_: answer
    with pytest.raises((TransientError, PermanentError), match="does not answer as Unity Catalog does"):
        catalog.register(entry())
    assert server.tables == {}


def test_one_that_hangs_or_is_away_is_not_waited_for(server, monkeypatch):
    monkeypatch.setattr(catalog_settings.CatalogSettings, "timeout_s", 0.4)
    catalog = opened(server)
    server.before = hang(3)
    began = time.monotonic()
    with pytest.raises(TransientError, match="does not answer"):
        catalog.register(entry())
    assert time.monotonic() - began < 2
    server.close()
    with pytest.raises(TransientError, match="does not answer"):
        catalog.register(entry())


@pytest.mark.parametrize(
    ("endless", "limit"), [(ENDLESS["headers"], r"0\.3"), (ENDLESS["body"], r"0\.1")], ids=list(ENDLESS)
)
def test_an_answer_that_never_ends_is_not_waited_for(server, endless, limit, monkeypatch):
    """Each piece of it comes in time."""
    monkeypatch.setattr(catalog_settings.CatalogSettings, "timeout_s", 0.1)
    with dripping_server(*endless) as url, pytest.raises(TransientError, match=rf"no whole answer within {limit} s"):
        opened(server, url=url).register(entry())


def test_a_missing_catalog_is_for_people_to_make(catalog):
    with pytest.raises(PermanentError, match="catalog 'other' does not exist: create it"):
        catalog.register(entry("other.bronze.orders"))


def test_the_token_is_sent_read_anew_and_never_shown(server, catalog, tmp_path):
    server.token = "s3cret"
    with pytest.raises(PermanentError, match=r"rejects the credentials: bad token None: check catalog.token"):
        catalog.register(entry())
    file = Path(tmp_path, "token")
    file.write_text("wrong\n")
    with pytest.raises(PermanentError, match=r"bad token Bearer \.\.\.:"):
        opened(server, token=f"${{file:{file}}}").register(entry())
    file.write_text("s3cret\n")
    assert opened(server, token=f"${{file:{file}}}").register(entry()) is Registration.CREATED
    with pytest.raises(ValueError, match="'token': write"):
        opened(server, token="Bearer ${file:/x}")
    settings = CatalogSettings.model_validate(
        {"kind": "unity", "url": server.url, "name": "a.b.{table}", "token": "x1"}
    )
    assert "x1" not in repr(settings)


def test_a_token_that_cannot_be_one_is_said_at_once(server):
    with pytest.raises(ConfigError, match="no header can have"):
        opened(server, token="a\nb")
    assert server.asked == []
