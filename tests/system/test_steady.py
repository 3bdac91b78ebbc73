"""A steady load moves nothing for 20 minutes; then a step of it does, and a death.

Half an hour, so no part of `make test`: `make soak` runs it and prints how long everything took.
"""

import os
import signal
import time
from collections.abc import Callable

import pytest

from bench.load_shapes import KnownLoad
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.group.protocol import MemberAssignment, Received, Target
from kgs_core.group.view.handover_gaps import Unread
from kgs_core.monitor.kafka.topic import load_history
from tests.system.group_record import Records, load_records, now
from tests.system.rig import BUSY, CALM, SECTIONS, ended
from tests.system.shaken_group import ShakenGroup, incarnation_of, owned_by, readers_of

STEADY_S = float(os.environ.get("KGS_STEADY_S", "1200"))
pytestmark = [
    pytest.mark.chaos,
    pytest.mark.soak,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(STEADY_S + 1500),
]
SUSPECT_AFTER_S = 30.0


@pytest.fixture
def group(open_group: Callable[..., ShakenGroup], monkeypatch: pytest.MonkeyPatch) -> ShakenGroup:
    monkeypatch.setitem(SECTIONS, "monitor", {})
    monkeypatch.setitem(SECTIONS, "packing", {**SECTIONS["packing"], "sentinel_timeout_s": 60.0})
    monkeypatch.setitem(SECTIONS, "membership", {})
    return open_group(suspect_after_s=SUSPECT_AFTER_S)


def changes(records: Records) -> list[Received[Target | MemberAssignment]]:
    """What the controller has written."""
    return [record for record in records if isinstance(record.message, Target | MemberAssignment)]


def when_above(group: ShakenGroup, since: float) -> float:
    """When the window first showed more than a consumer's capacity, seconds since 1970."""
    capacity = group.settings.packing.consumer_capacity_bytes_per_s
    history = load_history(group.settings, group.pipeline.admin, 10_000)
    times = ((found.reading.wall_ms / 1000, found.total_bytes_per_s) for found in history.measurements)
    return next(at for at, total in times if at > since and total > capacity)


def when_taken(records: Records) -> float:
    """When the last partition was taken over, seconds since 1970."""
    unread = Unread()
    unread.take(records)
    assert unread.taken_ms is not None
    return unread.taken_ms / 1000


def test_a_steady_load_moves_nothing_and_a_step_does(kafka: EmbeddedKafka, group: ShakenGroup) -> None:
    """With the window, the heartbeat and the patience that are the defaults; a look for a better plan every minute."""
    speed = CALM
    with KnownLoad(kafka.bootstrap_servers, group.topic, lambda _: speed), group.controller() as control:
        before = group.wait_settled(1).current
        group.wait_read(frozenset(before))
        written = len(changes(load_records(group.settings)))
        time.sleep(STEADY_S)
        assert changes(load_records(group.settings))[written:] == []
        group.logged.append(f"{STEADY_S:g} s of steady load: no Target, no Assignment")

        speed, at = BUSY, now()
        group.wait(lambda found: found.is_converged and len(readers_of(found)) == 2, "two read")
        shown, balanced = when_above(group, at), when_taken(load_records(group.settings))
        group.logged.append(
            f"load step: the window showed it after {shown - at:.1f} s, balanced {balanced - shown:.1f} s later"
        )
        found = group.wait_settled(2)
        moved = frozenset(tp for tp, consumer in found.current.items() if before[tp] != consumer)
        group.wait_read(moved)
        group.tell("handed over", moved, at)

        second = readers_of(found)[1]
        held, incarnation = owned_by(found, second), incarnation_of(found, second)
        os.kill(group.consumers()[second], signal.SIGKILL)
        at = group.deaths[incarnation] = now()
        group.wait_read(held)
        group.tell("killed", held, at)
        group.wait_settled(2, without=[incarnation])
        assert ended(control) == 0, group.tail()
    group.assert_complete()
