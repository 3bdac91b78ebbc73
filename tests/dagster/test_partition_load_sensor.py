"""Ticks of the load sensor, on a simulated group whose time goes by while the sensor sleeps."""

import re
from dataclasses import replace

import dagster as dg
import pytest

from kgs_core.errors import PermanentError, TransientError
from kgs_core.group.protocol import DesiredState, DesiredVersion, RunState, Tombstone
from kgs_core.model import ConsumerId
from kgs_dagster.jobs.rebalance import TARGET
from kgs_dagster.sensors.long_poll import LENGTH_S
from tests.dagster.rebalancing import FOUR, GROWN
from tests.dagster.results import recorded
from tests.dagster.ticking import Watched, config_of
from tests.sim_group import tp
from tests.world.topics import OPERATOR, TARGETS


def keys(result):
    return [request.run_key for request in result.run_requests]


def record_of(watched):
    """The key of the run that records the newest Target."""
    target = watched.sim.topics.log(TARGETS)[-1]
    return f"g/written-{target.offset}-{target.timestamp_ms}"


def test_a_group_comes_up_tick_by_tick(instance):
    """Topics and Target are made within a tick, and so are the orders for who has come: no run is waited for."""
    watched = Watched(instance)
    watched.sim.is_there = False
    assert keys(watched.tick()) == ["g/1/1", "g/2/1", record_of(watched)]
    assert watched.sim.is_there
    watched.settle()
    assert watched.sim.owners() == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_a_tick_at_rest_lasts_its_time_and_says_what_it_saw(watched):
    began = watched.sim.clock.now
    result = watched.evaluate()
    assert result.run_requests == []
    assert LENGTH_S - 2 <= watched.sim.clock.now - began <= LENGTH_S
    assert "2 consumers read 4 of 4 partitions" in result.skip_message
    assert "most for consumer 1" in result.skip_message
    assert result.cursor == str(max(watched.sim.measurements)), "the offset of the last measurement"
    watched.load = None
    assert watched.evaluate().cursor == result.cursor


def test_a_tick_ends_when_a_decision_falls(watched):
    began = watched.sim.clock.now
    watched.sim.events.append(
        lambda: watched.sim.clock.now > began + 12 and watched.__dict__.update(load=GROWN) is None
    )
    result = watched.evaluate()
    assert watched.sim.clock.now - began < 20
    assert watched.sim.target().assignment[tp("a")] == 3
    consumer, request = result.run_requests
    assert (consumer.run_key, request.run_key) == ("g/3/1", record_of(watched))
    config = config_of(request)
    assert config["measurement_offset"] == watched.sim.target().measurement_offset
    assert "consumer above consumer_capacity: 1" in config["reason"]
    assert (config["written"], config["packs"]) == (2, True)
    tags = {
        "kgs/group": "g",
        "kgs/group-rebalance": "g",
        "kgs/role": "rebalance",
        TARGET: record_of(watched).removeprefix("g/"),
    }
    assert request.tags.items() >= tags.items()


def test_the_change_under_way_stands_while_the_load_goes_on_changing_and_its_consumer_starts(watched):
    """Each Target of these would move other partitions, and none would relieve anybody sooner."""
    watched.load = GROWN
    watched.evaluate()
    stands = watched.sim.topics.log(TARGETS)[-1].offset
    for a, b in ((70, 80), (60, 85), (90, 65)):
        watched.load = {**GROWN, "a": a, "b": b}
        assert "g/3/1" in keys(watched.evaluate())
        assert watched.sim.topics.log(TARGETS)[-1].offset == stands
    watched.load = {**GROWN, "a": 110, "c": 90}
    watched.evaluate()
    assert watched.sim.topics.log(TARGETS)[-1].offset > stands, "it does not suffice any more"


def test_who_is_there_reads_before_any_run_has_begun_which_records_it_as_it_was(watched):
    """However late it begins; price, gaps, alternatives and speeds are those of the moment of the decision."""
    watched.grows()
    before = watched.sim.target().assignment
    (request,) = watched.evaluate().run_requests
    assert watched.sim.owners() == {"a": 3, "b": 1, "c": 2, "d": 2}
    watched.sim.go_by(60.0)
    watched.sim.publish(**FOUR)
    found = recorded(watched.rebalance(request))
    assert found["write_speeds"]["total_load_bytes_per_s"] == sum(GROWN.values())
    assignment = found["consumer_assignment"]
    assert (assignment["outcome"], assignment["is_new"], assignment["target_offset"]) == ("a new Target", True, 2)
    assert (assignment["rscore"], assignment["moved_partitions"]) == (0.9, 1)
    assert assignment["inputs"]["target_before"]["assignment"]["a"] == {"0": int(before[tp("a")])}
    assert {row["rscore"] for row in assignment["alternatives"]} > {0.9}
    load = watched.sim.measurements[assignment["inputs"]["measurement"]["offset"]]
    assert assignment["inputs"]["speeds"] == {str(p): speed for p, speed in load.speeds.items()}
    assert (found["rscore"]["rscore"], found["rscore"]["moved_partitions"]) == (0.9, 1)
    handover = found["handover"]
    assert (handover["outcome"], handover["moved_partitions"]) == ("converged", 1)
    assert 0 < handover["max_unread_s"] < 5
    assert watched.evaluate().run_requests == []


def test_a_tick_that_is_lost_behind_its_change_leaves_no_change_unrecorded(watched):
    """Killed between the Target and the request: consumers and record are asked for by the next tick."""
    watched.load = GROWN
    lost = keys(watched.evaluate())
    assert lost == ["g/3/1", record_of(watched)]
    assert keys(watched.evaluate()) == lost
    watched.settle()
    assert len(set(watched.sim.owners().values())) == 3
    assert sorted({process.consumer for process in watched.sim.fleet.living()}) == [1, 2, 3]


@pytest.mark.parametrize("error", [TransientError("Kafka is away"), PermanentError("no right to write")])
def test_what_a_tick_cannot_do_is_left_to_a_run_which_says_why(watched, error, capsys):
    watched.load, watched.errors["controller"] = GROWN, [error]
    (request,) = watched.evaluate().run_requests
    assert request.run_key == f"g/0/{config_of(request)['measurement_offset']}"
    assert f"left to a run: {error}" in capsys.readouterr().err
    assert watched.is_sound(watched.rebalance(request))
    assert watched.sim.target().assignment[tp("a")] == 3


def test_a_better_packing_is_asked_for_when_a_person_asks(watched):
    watched.load = dict.fromkeys(FOUR, 20)
    assert watched.evaluate().run_requests == []
    watched.sim.topics.append(DesiredState(RunState.RUNNING, "sam", 0, apply_ms=5))
    config = watched.asked()
    assert (config["reason"], config["applies_plan"]) == ("looking for a better packing: asked for by sam", False)


def test_a_death_that_is_confirmed_late_is_recorded_at_once_and_without_a_run(watched):
    """Until it is, `kgs status` speaks of a change; a run for it alone would take longer than the change did."""
    watched.sim.fleet.is_blind = True
    process = watched.sim.fleet.of(ConsumerId(2))[0]
    process.kill()
    watched.sim.go_by(60.0)
    watched.settle()
    assert len(set(watched.sim.owners().values())) == 2
    watched.sim.fleet.is_blind = False
    result = watched.evaluate()
    assert result.run_requests == []
    recorded_dead = [m.message.member for m in watched.sim.reader().read_to_end() if isinstance(m.message, Tombstone)]
    assert process.membership.member in recorded_dead


def test_assignments_are_given_without_any_measurement_and_without_a_run(watched):
    """The monitor may have no right to measure; the Target stands all the same, so there is nothing to record."""
    watched.load = None
    watched.sim.fleet.of(ConsumerId(2))[0].kill()
    assert keys(watched.tick()) == ["g/2/2"], "the dead one is started again, under its next attempt"
    assert watched.evaluate().run_requests == []
    assert watched.sim.owners() == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_while_a_run_is_in_progress_it_alone_writes_and_its_consumers_are_started(watched):
    watched.load = dict.fromkeys(FOUR, 20)
    watched.sim.topics.append(DesiredState(RunState.RUNNING, "sam", 0, apply_ms=5))
    (request,) = watched.evaluate().run_requests
    run = watched.open_run(request)  # at work
    watched.load = GROWN
    held = watched.evaluate()
    assert held.run_requests == []
    assert f"rebalance run {run.run_id[:8]} is in progress" in held.skip_message
    assert "this waits: consumer above consumer_capacity: 1" in held.skip_message
    # What the open run does: it writes the Target, and waits for consumer 3
    assert watched.is_sound(watched.rebalance(request, measurement_offset=watched.sim.publish(**GROWN)))
    watched.load = {**GROWN, "c": 90, "d": 90}  # another Target is due already
    assert keys(watched.evaluate()) == ["g/3/1"]


def test_a_run_that_has_not_begun_holds_up_nobody_and_records_all_that_was_done_meanwhile(watched):
    """In a cluster it may wait for a node; whatever happens meanwhile is the sensor's."""
    watched.grows()
    (request,) = watched.evaluate().run_requests
    watched.come(4)
    waiting = watched.open_run(request, dg.DagsterRunStatus.STARTING)
    watched.load = dict.fromkeys(FOUR, 90)
    assert watched.evaluate().run_requests == []
    assert len(set(watched.sim.owners().values())) == 4
    watched.instance.report_run_canceled(waiting)
    found = recorded(watched.rebalance(request))
    assert found["rscore"]["moved_partitions"] == found["handover"]["moved_partitions"] == 2
    assert watched.evaluate().run_requests == []


def test_failed_runs_are_tried_again_ever_later_and_hold_up_nobody_who_can_read(watched):
    watched.load = GROWN
    *_, request = watched.tick().run_requests
    watched.load = dict.fromkeys(FOUR, 90)
    *_, request = watched.evaluate().run_requests
    for _ in range(3):
        watched.open_run(request, dg.DagsterRunStatus.FAILURE)
    watched.sim.start(4)
    assert watched.evaluate().run_requests == []
    watched.load = dict.fromkeys(FOUR, 20)
    watched.sim.topics.append(DesiredState(RunState.RUNNING, "sam", 0, apply_ms=5))
    held = watched.evaluate()
    assert held.run_requests == []
    assert re.search(r"the last 3 rebalance runs failed, the next one in [12]\d s: until then", held.skip_message)
    assert watched.runs.next_attempt() == 4
    assert len(set(watched.sim.owners().values())) == 4


def test_an_outage_is_reported_in_a_line(watched):
    watched.errors["connect"] = [PermanentError("Kafka localhost:1: no such address: check it")]
    result = watched.evaluate()
    assert (result.run_requests, result.skip_message) == ([], "Kafka localhost:1: no such address: check it")


@pytest.mark.parametrize("what", ["read_to_end", "poll", "newest"])
def test_what_does_not_answer_is_reported_and_tried_again(watched, what):
    watched.errors[what] = [TransientError("Kafka is away")] * 60
    result = watched.evaluate()
    assert result.run_requests == []
    assert result.skip_message.startswith("Kafka is away")
    watched.errors = {}
    watched.load = GROWN
    assert keys(watched.evaluate()) == ["g/3/1", record_of(watched)]


def test_a_run_that_nobody_wants_is_ended(watched):
    stray = watched.sim.fleet.add(ConsumerId(7))
    stray.started_at += 60
    assert watched.evaluate().run_requests == []
    assert watched.fleet.stopped == [stray.handle]


@pytest.mark.parametrize("what", ["runs", "hold"])
def test_what_was_read_is_not_forgotten_over_an_error_of_the_database(watched, monkeypatch, what):
    """A reader gives out nothing twice: people were not heard until the next tick."""
    owner = type(watched.sim.fleet if what == "runs" else watched.runs)
    call, failed = getattr(owner, what), []

    def locked(self, *arguments):
        if watched.sim.topics.log(OPERATOR) and not failed:
            failed.append(True)
            raise TransientError("Dagster: runs cannot be read: database is locked")
        return call(self, *arguments)

    monkeypatch.setattr(owner, what, locked)
    due = watched.sim.clock.now + 10
    pause = DesiredState(RunState.PAUSED, "me", 0)
    watched.sim.events.append(lambda: watched.sim.clock.now > due and watched.sim.topics.append(pause) is not None)
    watched.evaluate()
    assert failed
    assert watched.sim.owners() == {}


def test_everybody_silent_is_seen_by_who_has_just_begun_to_listen(watched):
    for process in watched.sim.fleet.living():
        process.is_frozen = True
    watched.sim.go_by(35)
    *_, request = watched.evaluate().run_requests
    assert "consumer lost: 1, 2" in config_of(request)["reason"]
    assert "consumer lost: 1, 2" in watched.sim.target().reason


@pytest.mark.parametrize("error", [TransientError, PermanentError])
def test_a_monitor_that_fails_keeps_nobody_from_being_started(watched, error):
    """As under `kgs control`: the group is looked after by what is known, and the tick says what is not."""
    watched.errors["newest"] = [error("Kafka b:9092: write 'monitor.writeSpeed': denied")] * 600
    watched.sim.fleet.of(ConsumerId(2))[0].kill()
    assert keys(watched.tick()) == ["g/2/2"]
    watched.settle()
    assert "denied" in watched.evaluate().skip_message


def test_a_replacement_is_asked_for_step_by_step_until_it_is_over(watched):
    """What a spare has opened asks for the next run at once, not at the next look for a better packing."""
    watched.sim.topics.append(DesiredVersion("2", "b", "me", watched.sim.clock.ms))
    watched.sim.fleet.habits = replace(watched.sim.fleet.habits, version="2", config_hash="b")
    asked = [watched.tick().run_requests for _ in range(9)]
    assert all(asked[:6]), "no tick goes by to its end before it is over"
    assert {process.membership.identity.version for process in watched.sim.fleet.living()} == {"2"}
    assert len(watched.sim.owners()) == 4
    assert asked[-1] == [], "and then nothing is asked for"


def test_a_tick_carries_out_one_change_after_the_other(watched):
    """What is given to a consumer that came back names no Target, so the tick goes on, also for the next death."""
    watched.load = None
    began = watched.sim.clock.now
    second = watched.sim.fleet.of(ConsumerId(2))[0]
    second.kill()
    watched.tick()

    def first_dies():
        if watched.sim.clock.now < began + 20:
            return False
        watched.sim.fleet.of(ConsumerId(1))[0].kill()
        watched.sim.start(1)
        return True

    watched.sim.events.append(first_dies)
    assert watched.evaluate().run_requests == []
    assert watched.sim.owners() == {"a": 1, "b": 1, "c": 2, "d": 2}
