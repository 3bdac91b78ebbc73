"""A group under a whole Dagster on a real broker: processes die, its memory is lost, a run is terminated."""

import json
import os
import signal
from collections.abc import Callable

import pytest

from bench.load_shapes import KnownLoad
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.group.protocol import Incarnation
from kgs_core.reporting.status import GroupStatus
from tests.processes import pid_of
from tests.system.dagster_room import DagsterRoom, dagster_room
from tests.system.group_record import gone_in_order, now
from tests.system.rig import BUSY, CALM
from tests.system.shaken_group import ShakenGroup, line_of, owned_by, readers_of
from tests.waiting import wait_until

pytestmark = [pytest.mark.neighbours, pytest.mark.chaos, pytest.mark.slow(170), pytest.mark.timeout(1800)]
SUSPECT_AFTER_S = 20.0


def incarnations(found: GroupStatus) -> set[Incarnation | None]:
    return {line.incarnation for line in found.consumers}


def pid_of_consumer(found: GroupStatus, number: int) -> int:
    return pid_of(line_of(found, number).process)


def recorded(group: ShakenGroup, room: DagsterRoom, asset: str) -> set[str]:
    """What the materializations of an asset name, as the UI shows them."""
    path = json.dumps([group.settings.group, asset])
    entries = "assetMaterializations { metadataEntries { label } }"
    found = room.ask(f"{{ assetOrError(assetKey: {{path: {path}}}) {{ ... on Asset {{ {entries} }} }} }}")
    made = found["assetOrError"].get("assetMaterializations", [])
    return {entry["label"] for each in made for entry in each["metadataEntries"]}


def terminate_in_the_ui(group: ShakenGroup, room: DagsterRoom) -> None:
    """The run of the one that reads: it drains and says so; another one comes."""
    before = group.look()
    (reader,) = readers_of(before)
    line = line_of(before, reader)
    assert line.process is not None
    assert line.incarnation is not None
    held, at = owned_by(before, reader), now()
    answer = room.ask(f'mutation {{ terminateRun(runId: "{line.process.run_id}") {{ __typename }} }}')
    assert answer["terminateRun"]["__typename"] == "TerminateRunSuccess", answer
    group.wait_read(held)
    group.tell("run terminated in the UI", held, at)
    group.wait_settled(1, without=[line.incarnation])
    assert line.incarnation in gone_in_order(group.assert_right())


def frozen_and_then_killed(group: ShakenGroup, room: DagsterRoom) -> None:
    """The one that reads hangs, is asked to end, and dies: the runs that come in its place must begin."""
    before = group.look()
    (reader,) = readers_of(before)
    held, incarnation, pid = (
        owned_by(before, reader),
        line_of(before, reader).incarnation,
        pid_of_consumer(before, reader),
    )
    assert incarnation is not None
    os.kill(pid, signal.SIGSTOP)
    group.wait_read(held)
    wait_until(lambda: room.count_runs("consumer_job", "CANCELING"), 60, "it is asked to end")
    os.kill(pid, signal.SIGKILL)
    group.deaths[incarnation] = now()
    group.wait_settled(1, without=[incarnation])


def without_eyes(group: ShakenGroup, room: DagsterRoom) -> None:
    """Webserver and code server die and come again: the same consumers read on."""
    before = group.look()
    at = now()
    room.kill(room.webserver, room.code_server)
    group.wait_read(frozenset(before.current))
    room.code_server.start()
    room.webserver.start()
    room.wait_up()
    group.wait_read(frozenset(before.current))
    group.tell("webserver and code server killed and started again", frozenset(before.current), at)
    after = group.wait_settled(1)
    assert incarnations(after) == incarnations(before)
    assert after.changes == before.changes


def without_daemon(group: ShakenGroup, room: DagsterRoom) -> None:
    """The daemon dies as soon as a change is decided, and comes again: the change is carried out."""
    group.wait(lambda found: len(set(found.target.assignment.values() if found.target else ())) == 2, "two are to read")
    room.kill(room.daemon)
    room.daemon.start()
    group.wait_settled(2)
    group.assert_right()


def without_memory(group: ShakenGroup, room: DagsterRoom) -> None:
    """All that Dagster knew is lost: nobody is started twice, and who dies then is replaced all the same."""
    before = group.look()
    room.kill(room.daemon)  # from here on nobody starts a run, and the one at work would write into what is deleted
    at_work = ("STARTING", "STARTED", "CANCELING")
    wait_until(lambda: not room.count_runs("rebalance_job", *at_work), 60, "the rebalance at work is over")
    room.kill(room.webserver, room.code_server)
    room.forget()
    room.start()
    group.wait(lambda found: found.controller_is_heard, "the sensor measures again")
    group.wait_read(frozenset(before.current))
    after = group.wait_settled(2)
    assert incarnations(after) == incarnations(before)

    first = readers_of(after)[0]
    held, incarnation = owned_by(after, first), line_of(after, first).incarnation
    assert incarnation is not None
    os.kill(pid_of_consumer(after, first), signal.SIGKILL)
    at = group.deaths[incarnation] = now()
    group.wait_read(held)
    group.tell("consumer killed that Dagster has no run of", held, at)
    group.wait_settled(2, without=[incarnation])


def test_whatever_of_dagster_dies_the_group_goes_on(
    kafka: EmbeddedKafka, open_group: Callable[..., ShakenGroup]
) -> None:
    group, speed = open_group(suspect_after_s=SUSPECT_AFTER_S), CALM
    with dagster_room(group.pipeline.folder, group.pipeline.config) as room:
        with KnownLoad(kafka.bootstrap_servers, group.topic, lambda _: speed):
            found = group.wait_settled(1)
            group.wait_read(frozenset(found.current))
            terminate_in_the_ui(group, room)
            frozen_and_then_killed(group, room)
            without_eyes(group, room)
            speed = BUSY
            without_daemon(group, room)
            # Not of each: a change that one run does not end, and the next goes on with, has none
            wait_until(lambda: "reaction_s" in recorded(group, room, "handover"), 60, "how long a change took")
            without_memory(group, room)
        group.pipeline.wait_caught_up([group.topic], 120)
        wait_until(lambda: room.count_runs("lake_audit_job", "SUCCESS"), 120, "the first table is audited at once")
        group.kgs("stop", "--yes", "--wait")
    group.assert_complete()
