"""`kgs control`, a real broker, real consumers: the group grows, shrinks, pauses, and survives its controller."""

import json
import os
import signal
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from bench.load_shapes import KnownLoad
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.model import TopicPartition
from kgs_core.system.processes import find_runs
from tests.failpoints import crash_at
from tests.system.billing import billed
from tests.system.exporter import Scrape, counted, exporter, scraped_beside
from tests.system.pipeline import json_values, produce
from tests.system.rig import BUSY, CALM, PARTITIONS, Rig, ended
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow(30), pytest.mark.timeout(1500)]


@pytest.fixture
def rig(kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> Iterator[Rig]:
    with Rig(tmp_path, kafka, f"{topic_prefix}load") as rig:
        yield rig


def positions(rig: Rig) -> dict[TopicPartition, int | None]:
    return rig.pipeline.positions([rig.topic])


def test_a_group_follows_its_load_and_its_people(rig: Rig) -> None:
    """One consumer, two when four times as much is written, one again; stopped, and one again; nothing lost."""
    speed = CALM
    load = KnownLoad(rig.pipeline.bootstrap, rig.topic, lambda _: speed)
    with load, rig.controller("--metrics-port", "0") as control:
        with exporter(rig.pipeline.command("metrics")) as metrics, billed(rig.kgs):
            assert "kgs_controller_up" not in "".join(metrics())  # no topics of the group yet: nothing is known
            rig.wait_readers(1)
            found = json.loads(rig.kgs("status", "--json").stdout)
            assert (found["converged"], found["controller"]) == (True, "heard")
            assert found["target"] == found["current"] == {rig.topic: {str(n): 1 for n in range(PARTITIONS)}}
            assert [consumer["id"] for consumer in found["consumers"]] == [1]
            assert found["consumers"][0]["stopped"] == {}
            assert isinstance(found["lag"], int)

            speed = BUSY
            rig.wait_readers(2)
            assert rig.consumers().keys() == {1, 2}
            planned = lambda: json.loads(rig.kgs("plan", "--json").stdout)  # noqa: E731
            # While the measured speed rises, a plan may ask for more than was moved
            plan = wait_until(lambda: len((plan := planned())["moves"]) <= 1 and plan, 60, "the plan is what was moved")
            assert len(set(plan["assignment"][rig.topic].values())) == plan["consumers"] == 2

            speed = CALM
            found = rig.wait_readers(1)
            assert [number for number, _ in groupby(change.consumers for change in found.changes)] == [1, 2, 1]
            wait_until(lambda: len(rig.consumers()) == 1, 60, f"the other one ended: {rig.tail()}")
            assert_all_is_shown(rig, metrics)
        assert_it_follows_its_people(rig)
        assert ended(control) == 0, rig.tail()
    rig.pipeline.wait_caught_up([rig.topic])
    rig.pipeline.assert_exact(rig.topic)
    rig.pipeline.assert_audit_is_clean()
    assert len(rig.consumers()) == 1


def assert_all_is_shown(rig: Rig, metrics: Scrape) -> None:
    """What `kgs metrics` says of one consumer that reads all, after two changes; the end of one is known."""
    wait_until(lambda: counted(metrics()) >= (2, 1, 1), 60, f"changes are counted: {rig.tail()}")
    wait_until(lambda: [v for n, v in metrics().items() if 'state="joined"' in n] == [1], 60, "one has left")
    shown = metrics()
    assert [shown[n] > 0 for n in shown if n.startswith(("kgs_consumer_memory", "kgs_commits_total"))] == [True] * 2
    assert [shown[name] for name in shown if 'state="owned"' in name] == [1.0] * PARTITIONS
    lags = [0 <= value < 60 for name, value in shown.items() if name.startswith("kgs_partition_lag_seconds")]
    assert lags == [True] * PARTITIONS
    rows = len(rig.pipeline.rows(rig.topic))
    wait_until(lambda: max(v for n, v in metrics().items() if "kgs_table_rows" in n) >= rows, 60, "rows of the table")
    assert {v for n, v in metrics().items() if "kgs_audit_findings" in n} == {0.0}
    assert any("kgs_table_complete_until" in name for name in metrics())
    assert [each["problem"] for each in json.loads(rig.kgs("status", "--json").stdout)["complete"]] == [None]


def assert_it_follows_its_people(rig: Rig) -> None:
    """Paused, resumed, stopped and resumed."""
    wait_until(lambda: "kgs_controller_up" in "".join(scraped_beside(rig.log)), 60, "metrics of the controller")
    assert "asked for: pause" in (paused := rig.kgs("pause", "--wait").stdout)
    assert paused.endswith("done\n")
    before = positions(rig)
    assert rig.look().current == {}
    assert "paused: no consumer reads" in rig.kgs("status").stdout
    assert positions(rig) == before
    assert len(rig.consumers()) == 1

    rig.kgs("resume", "--wait")
    wait_until(lambda: all((p or 0) > (before[tp] or 0) for tp, p in positions(rig).items()), 60, "read again")

    rig.kgs("stop", "--yes", "--wait")
    wait_until(lambda: not rig.consumers(), 60, f"all have ended: {rig.tail()}")
    rig.kgs("resume")
    rig.wait_readers(1)


@pytest.mark.chaos
def test_consumers_outlive_their_controller_the_dead_are_replaced_and_a_newer_controller_ends_the_older(
    rig: Rig,
) -> None:
    with KnownLoad(rig.pipeline.bootstrap, rig.topic, lambda _: BUSY):
        with rig.controller() as control:
            before = rig.wait_readers(2)
            control.kill()
        down = rig.wait(lambda found: not found.controller_is_heard, "it is seen that the controller is down")
        assert down.current == before.current
        assert "the controller is down" in rig.kgs("status").stdout
        old = positions(rig)
        wait_until(lambda: all((p or 0) > (old[tp] or 0) for tp, p in positions(rig).items()), 60, "they read on")
        with rig.controller() as control:
            rig.wait(lambda found: found.controller_is_heard, "another controller")
            found = rig.wait_readers(2)
            assert [c.incarnation for c in found.consumers] == [c.incarnation for c in before.consumers]
            victim = rig.consumers()[1]
            os.kill(victim, signal.SIGKILL)
            known = {c.incarnation for c in before.consumers}
            rig.wait(
                lambda found: (
                    found.is_converged
                    and len(found.current) == PARTITIONS
                    and any(c.incarnation not in known for c in found.consumers)
                ),
                "the dead one has a successor",
            )
            assert victim not in rig.consumers().values()
            with rig.controller() as newer:

                def older_has_ended() -> bool:
                    for request in ("pause", "resume"):  # they write for it, the older one too until it is fenced
                        rig.kgs(request, "--wait")
                    return control.poll() is not None

                wait_until(older_has_ended, 60, f"the newer one fences the older: {rig.tail()}")
                assert control.returncode == 3
                assert "do not start it again" in rig.log.read_text()
                assert ended(newer) == 0, rig.tail()
    rig.pipeline.wait_caught_up([rig.topic])
    rig.pipeline.assert_exact(rig.topic)
    rig.pipeline.assert_audit_is_clean()


POINTS = ("fenced", "in-transaction", "after-write", "before-launch", "launched")
"""What each leaves in Kafka or on the machine differs; `tests/scenarios/test_every_kill.py` has every step."""


@pytest.mark.chaos
def test_a_controller_killed_at_every_point_in_turn(rig: Rig, tmp_path: Path) -> None:
    """Each life ends at the next point, the last one lives on; nothing is started twice, nothing lost."""
    produce(rig.pipeline.bootstrap, rig.topic, json_values(0, 1000))
    for point in POINTS:
        with rig.controller(**crash_at(point, tmp_path)) as control:
            wait_until(lambda: control.poll() is not None, 120, f"dead at {point}: {rig.tail()}")
            assert control.returncode == -signal.SIGKILL, rig.tail()
        assert (tmp_path / point).exists()
    (started,) = rig.consumers().values()
    with rig.controller("--end-consumers") as control:
        rig.wait_readers(1)
        assert list(rig.consumers().values()) == [started]
        rig.pipeline.wait_caught_up([rig.topic])
        assert ended(control, 120) == 0, rig.tail()
    assert rig.consumers() == {}
    assert find_runs(f"{rig.settings.group}@") == {}
    rig.pipeline.assert_exact(rig.topic)
