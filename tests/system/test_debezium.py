"""Tables of newest rows follow a real PostgreSQL by a real Debezium, whatever is killed meanwhile."""

from pathlib import Path

import pytest

from bench.debezium.follower import Follower
from bench.debezium.postgres import find_postgres
from bench.debezium.run import FAULTS, run_rounds
from kgs_core.errors import PermanentError
from kgs_core.lake.audit.audit import audit_lake
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.neighbours, pytest.mark.chaos, pytest.mark.slow(150), pytest.mark.timeout(1800)]


def test_tables_are_what_the_database_has_after_all_that_can_happen(tmp_path: Path) -> None:
    try:
        find_postgres()
    except PermanentError as e:
        pytest.skip(str(e))
    with Follower(tmp_path, seed=1, rows=300, per_s=100) as follower:
        found = run_rounds(follower, [*FAULTS], 4.0, PATIENCE * 60.0, print)
        assert [(each.fault, each.differences) for each in found] == [(fault, []) for fault in FAULTS]
        assert all(each.changes for each in found)
        audit = audit_lake(follower.settings, with_log=True)
        assert audit.ok, audit
