"""Any rule, any records, any history: what a plain loop over all records says is in the tables, and nothing else."""

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.combinations.case import Case
from tests.combinations.judge import Judge, tables_in
from tests.combinations.strategies import cases
from tests.combinations.world import World, patched


def problems_of(case: Case, root: Path) -> list[str]:
    """What is wrong in the end."""
    world = World(case.rule, root)
    with patched(world):
        for step in case.steps:
            world.do(step)
        if stuck := world.finish():
            return stuck
        judge = Judge(world.kafka, world.editions)
        problems = judge.faults(tables_in(root), may_be_redriven=world.has_redriven)
        problems += world.redrive_all()
        problems += world.materialize()
        found = tables_in(root)
        is_redriven = not world.has_unknown_route
        problems += judge.faults(found, may_be_redriven=True, is_redriven=is_redriven)
        problems += judge.faults_of_newest(found) if case.rule.newest else []
        audited = world.audit()
        return problems if audited.ok else [*problems, f"audit: {audited}"]


def check(case: Case, root: Path) -> None:
    root.mkdir(exist_ok=True)
    try:
        problems = problems_of(case, root)
    finally:
        shutil.rmtree(root)
    assert problems == [], f"\n{case!r}\n" + "\n".join(problems)


@pytest.mark.slow(60)
@given(case=cases())
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_any_history_of_any_rule(tmp_path_factory: pytest.TempPathFactory, case: Case) -> None:
    check(case, tmp_path_factory.getbasetemp() / "case")
