"""What Dagster keeps on PostgreSQL does not grow for ever either: the tests of SQLite, on the other storage."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psycopg2
import pytest

from tests.dagster.test_retention import (
    test_an_event_that_cannot_be_read_keeps_no_other_one,
    test_killed_in_the_middle_nothing_else_is_lost_and_the_next_run_goes_on,
    test_no_table_of_the_database_grows_for_ever,
    test_runs_that_people_start_from_an_assets_page_go_but_for_the_newest_of_each_day,
    test_ticks_of_a_sensor_of_the_same_name_in_another_code_location_stay,
)
from tests.system.postgres import running_postgres
from tests.wheel import ROOT

__all__ = [
    "test_an_event_that_cannot_be_read_keeps_no_other_one",
    "test_killed_in_the_middle_nothing_else_is_lost_and_the_next_run_goes_on",
    "test_no_table_of_the_database_grows_for_ever",
    "test_runs_that_people_start_from_an_assets_page_go_but_for_the_newest_of_each_day",
    "test_ticks_of_a_sensor_of_the_same_name_in_another_code_location_stay",
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
    with running_postgres() as url:
        yield url


@pytest.fixture
def databases(server: str) -> Database:
    return Database(server)


@pytest.fixture
def local_instance(server: str, databases: Database, tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """On an empty database, with the settings that kgs comes with."""
    databases.execute("drop schema public cascade; create schema public")
    home = tmp_path / "dagster_home"
    home.mkdir()
    storage = f"\nstorage:\n  postgres:\n    postgres_url: {server}\n"
    (home / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text() + storage)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance
