"""The plan for another consumer group in Dagster: its figures, none for what is not known, one line for what fails."""

from random import Random

from kgs_core.api.plans import PlanReport
from kgs_core.config.packing import PackingSettings
from kgs_core.model import TopicPartition
from kgs_core.planning.group import Group
from kgs_core.planning.group_load import Look, group_load
from kgs_core.planning.load import Load
from kgs_core.planning.plan import make_plan
from kgs_dagster.jobs.plan_group import plan_group_job
from tests.dagster.groups import group
from tests.dagster.results import WHY, failure, output, refusing


def run(instance, make):
    config = {"ops": {"plan_group": {"config": {"group": "orders-app"}}}}
    return plan_group_job(group(), make).execute_in_process(instance=instance, run_config=config, raise_on_error=False)


def test_a_plan_is_recorded_as_far_as_it_is_known(instance):
    a, b = TopicPartition("t", 0), TopicPartition("t", 1)
    asked = []

    def make(settings, name):
        asked.append((settings.group, name))
        logs = {a: (0, 20), b: (0, 20)}
        looks = [Look(0.0, {a: "x", b: "y"}, {a: 10}, logs)]
        seen = group_load(name, [("x", "x"), ("y", "y")], looks, {a: 1.0, b: 1.0}, {a: 10.0, b: 10.0})
        packing = PackingSettings(packing_capacity_bytes_per_s=100, spare_consumers=0)
        found = make_plan(Load({a: 10.0, b: 10.0}), Group(seen.current), packing, lambda: Random(1))
        return PlanReport(**{name: getattr(found, name) for name in found.__dataclass_fields__}, seen=seen)

    found = output(run(instance, make))
    assert asked == [("g", "orders-app")]
    assert (found["group"], found["members_now"], found["consumers_needed"], found["moves"]) == ("orders-app", 2, 1, 1)
    assert "2 members where 1 would do" in found["advice"]
    assert [row["behind_bytes"] for row in found["members"]] == [10, None]
    assert [row["consumer"] for row in found["assignment"]] == [found["assignment"][0]["consumer"]] * 2


def test_a_group_that_cannot_be_seen_is_one_line(instance):
    assert failure(run(instance, refusing)) == ("plan_group", WHY)
