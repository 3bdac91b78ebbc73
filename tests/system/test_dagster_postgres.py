"""Dagster on PostgreSQL: what it keeps does not grow for ever, changes go on; by the tests of SQLite."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psycopg2
import pytest

from bench.debezium.postgres import Postgres
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import PermanentError
from tests.dagster.test_retention import (
    in_its_own_tables,
    test_an_event_that_cannot_be_read_keeps_no_other_one,
    test_killed_in_the_middle_nothing_else_is_lost_and_the_next_run_goes_on,
    test_no_table_of_the_database_grows_for_ever,
    test_runs_that_people_start_from_an_assets_page_go_but_for_the_newest_of_each_day,
)
from tests.system.test_dagster_rebalance import (
    Rig,
    test_a_change_whose_tick_was_killed_is_made_once_and_recorded,
    test_a_tick_makes_the_group_and_whoever_joins_reads_before_any_run_which_records_it,
    test_of_two_runs_at_once_the_newer_one_counts,
)
from tests.wheel import ROOT

__all__ = [
    "in_its_own_tables",
    "test_a_change_whose_tick_was_killed_is_made_once_and_recorded",
    "test_a_tick_makes_the_group_and_whoever_joins_reads_before_any_run_which_records_it",
    "test_an_event_that_cannot_be_read_keeps_no_other_one",
    "test_killed_in_the_middle_nothing_else_is_lost_and_the_next_run_goes_on",
    "test_no_table_of_the_database_grows_for_ever",
    "test_of_two_runs_at_once_the_newer_one_counts",
    "test_runs_that_people_start_from_an_assets_page_go_but_for_the_newest_of_each_day",
]
pytestmark = [pytest.mark.neighbours, pytest.mark.slow(60)]


class Database:
    """What an instance on PostgreSQL keeps."""

    def __init__(self, url: str) -> None:
        self._url = url

    def rows(self) -> dict[tuple[str, str], int]:
        """Rows of every table."""
        found = {}
        with psycopg2.connect(self._url) as connection, connection.cursor() as cursor:
            cursor.execute("select tablename from pg_tables where schemaname = 'public'")
            for (table,) in cursor.fetchall():
                cursor.execute(f"select count(*) from {table}")
                ((found["postgres", table],),) = cursor.fetchall()
        connection.close()
        return found

    def execute(self, statement: str) -> None:
        with psycopg2.connect(self._url) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
        connection.close()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    try:
        server = Postgres()
    except PermanentError as e:
        pytest.skip(str(e))
    with server:
        yield server.url


@pytest.fixture
def databases(server: str) -> Database:
    return Database(server)


@pytest.fixture
def storage(server: str, databases: Database) -> str:
    """An empty database, as dagster.yaml names it."""
    databases.execute("drop schema public cascade; create schema public")
    return f"\nstorage:\n  postgres:\n    postgres_url: {server}\n"


@pytest.fixture
def local_instance(storage: str, tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """With the settings that kgs comes with."""
    home = tmp_path / "dagster_home"
    home.mkdir()
    (home / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text() + storage)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


@pytest.fixture
def rig(storage: str, kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path, kafka.bootstrap_servers, f"{topic_prefix}load", storage)
    try:
        yield rig
    finally:
        rig.close()
