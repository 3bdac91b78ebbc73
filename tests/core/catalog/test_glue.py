"""Faults of AWS Glue, by boto3 against a server that speaks its protocol; what works, by moto: `test_real_glue`."""

import sys
import time

import pytest

from kgs_core.catalog.catalog import Registration
from kgs_core.catalog.glue import open_glue
from kgs_core.config import catalog as catalog_settings
from kgs_core.config.settings import CatalogSettings
from kgs_core.errors import ConfigError, PermanentError, TransientError
from tests.configuration import settings_of
from tests.core.catalog.entries import KINDS, entry
from tests.dripping_server import ENDLESS, dripping_server
from tests.glue_server import GlueServer, error

ORDERS = ("bronze", "orders")
MORE = {**KINDS, "more": KINDS["tags"]}


@pytest.fixture
def server(monkeypatch):
    for name, value in (
        ("ACCESS_KEY_ID", "key"),
        ("SECRET_ACCESS_KEY", "s3cret"),
        ("EC2_METADATA_DISABLED", "true"),
        ("DEFAULT_REGION", "eu-west-1"),
    ):
        monkeypatch.setenv(f"AWS_{name}", value)
    with GlueServer() as server:
        yield server


def opened(server, root="s3://lake", **more):
    section = {"kind": "glue", "url": server.url, "name": "{folder}.{last}"}
    return open_glue(settings_of(lake={"root": root}), CatalogSettings.model_validate({**section, **more}))


@pytest.fixture
def catalog(server):
    found = opened(server)
    yield found
    found.close()


def orders(**more):
    return entry("bronze.orders", **more)


def test_a_lost_reply_is_no_second_table(server, catalog):
    server.databases.add("bronze")
    server.lost_replies = 1
    assert catalog.register(orders()) is Registration.UNCHANGED  # boto asks again, and is told that it is there
    server.lost_replies = 5
    server.tables.clear()
    with pytest.raises(TransientError, match="does not answer"):
        catalog.register(orders())


def test_somebody_elses_change_is_left_to_the_next_run(server, catalog):
    catalog.register(orders())

    def meddle(action):
        if action == "UpdateTable":
            server.tables[ORDERS]["VersionId"] = "9"

    server.before = meddle
    with pytest.raises(TransientError, match="another version"):
        catalog.register(orders(kinds=MORE))


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (error("InternalServiceException", "down", 500), TransientError, "fails"),
        (error("ThrottlingException", "slow down"), TransientError, "fails"),
        (error("AccessDeniedException", "not you"), PermanentError, "refuses: .* check rights"),
        ((200, {}), (TransientError, PermanentError), "."),
        ((503, {}), TransientError, "fails"),
    ],
)
def test_what_may_pass_is_told_from_what_a_person_must_mend(server, catalog, reply, kind, words):
    server.before = lambda _: reply
    with pytest.raises(kind, match=words):
        catalog.register(orders())
    assert server.tables == {}


def test_one_that_hangs_or_is_away_is_not_waited_for(server, monkeypatch):
    monkeypatch.setattr(catalog_settings.CatalogSettings, "timeout_s", 0.4)
    catalog = opened(server)
    server.before = lambda _: time.sleep(4)
    began = time.monotonic()
    with pytest.raises(TransientError, match="does not answer"):
        catalog.register(orders())
    assert time.monotonic() - began < 3
    server.close()
    with pytest.raises(TransientError, match="does not answer"):
        catalog.register(orders())


def test_without_keys_a_person_is_told(server, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(PermanentError, match="Unable to locate credentials: check the environment"):
        opened(server).register(orders())


def test_what_cannot_work_is_said_before_anything_is_asked(server, monkeypatch):
    with pytest.raises(ConfigError, match="for a lake on s3://, not /lake"):
        opened(server, root="/lake")
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ConfigError, match=r"needs boto3: pip install 'kgs\[glue\]'"):
        opened(server)
    assert server.asked == []


@pytest.mark.parametrize("endless", ENDLESS.values(), ids=list(ENDLESS))
def test_an_answer_that_never_ends_is_not_waited_for(server, endless, monkeypatch):
    """Each piece of it comes in time."""
    monkeypatch.setattr(catalog_settings.CatalogSettings, "timeout_s", 0.1)
    with dripping_server(*endless) as url, pytest.raises(TransientError, match=r"no whole answer within 0\.6 s"):
        opened(server, url=url).register(orders())
