"""Records of changes that somebody else goes on with, or that another one has overtaken: what should hold."""

import time

import dagster as dg
import pytest

from kgs_core.errors import TransientError
from kgs_core.group.protocol import DesiredState, RunState, Tombstone
from kgs_core.model import ConsumerId
from kgs_core.runtime.rebalance_ports import Reference
from kgs_core.runtime.rebalance_run import RebalanceRun
from tests.dagster.rebalancing import FOUR, GROWN
from tests.dagster.results import checks, failure, recorded
from tests.dagster.ticking import Watched
from tests.sim_group import tp
from tests.world.topics import TARGETS

ALL_GROWN = dict.fromkeys(FOUR, 90)


@pytest.fixture
def timely(instance, monkeypatch):
    """Its times come after those that Dagster notes of a run, which are real."""
    monkeypatch.setattr("tests.sim_group.START_S", time.time() + 60.0)  # noqa: TID251
    watched = Watched(instance)
    watched.settle()
    return watched


def after(watched, seconds, do):
    """`do` once, so many seconds from now, while others let time go by."""
    due = watched.sim.clock.now + seconds

    def event():
        if watched.sim.clock.now < due:
            return False
        watched.sim.events.clear()
        do()
        return True

    watched.sim.events.append(event)


def goes_on(watched):
    """As a tick does."""
    RebalanceRun("g", watched.sim.options, Reference(packs=False), watched.sim.ports).carry_out(5.0)


def newest(watched):
    return watched.sim.topics.log(TARGETS)[-1]


def begun(watched, *joined):
    """A tick's change, for partition a goes to consumer 3; its record."""
    if joined:
        watched.come(*joined)
    watched.load = GROWN
    *_, request = watched.evaluate().run_requests
    return request


def overtaken(watched, request, *joined):
    """Another tick's change, before the run of the first one has begun."""
    waiting = watched.open_run(request, dg.DagsterRunStatus.STARTING)
    if joined:
        watched.come(*joined)
    watched.load = ALL_GROWN
    watched.evaluate()
    watched.instance.report_run_canceled(waiting)


# Fenced runs


def test_who_began_a_change_goes_on_beside_the_run_that_records_it(watched):
    """The run is fenced by the next tick while it waits for a consumer, and that is no failure of its own."""
    request = begun(watched)  # nobody starts consumer 3: the run waits for it
    written = newest(watched)
    after(watched, 10, lambda: (setattr(watched, "load", ALL_GROWN), watched.evaluate()))
    done = watched.rebalance(request)
    assert newest(watched) != written
    assert done.success
    assert recorded(done)["handover"]["outcome"].startswith("superseded: ")


def test_a_change_is_recorded_to_its_end_though_another_tick_went_on_with_it(watched):
    """The tick sees first that the consumer has come, and gives it its partitions: the run may write nothing more."""
    request = begun(watched)
    after(watched, 10, lambda: (watched.come(3), watched.evaluate()))
    done = watched.rebalance(request)
    found = recorded(done)["handover"]
    assert (found["outcome"], found["moved_partitions"]) == ("converged", 1)
    assert checks(done)["handover", "change_is_over"]


def test_a_change_that_is_not_finished_is_followed_no_longer_than_it_may_take(watched):
    """Consumer 3 never comes. Till then no other run begins; the sensor takes one that lasts longer for hung."""
    request = begun(watched)
    began = watched.sim.clock.now

    def only_a_death_is_recorded():
        watched.sim.topics.fence_writers()
        watched.sim.topics.append(Tombstone(watched.sim.fleet.of(ConsumerId(2))[0].member))

    after(watched, 10, only_a_death_is_recorded)
    done = watched.rebalance(request)
    assert watched.sim.clock.now - began < 22
    assert watched.is_sound(done)
    assert "timed out: whoever goes on with it was not there in time" in failure(done)[1]


def test_a_followed_change_has_its_times(timely):
    request = begun(timely)
    after(timely, 10, lambda: (timely.come(3), goes_on(timely)))
    found = recorded(timely.rebalance(request))["handover"]
    assert found["outcome"] == "converged"
    assert found["target_to_started_s"] == pytest.approx(12, abs=2), "of consumer 3, whom the run has not seen itself"


@pytest.mark.parametrize("what", ["reader", "read_to_end"])
def test_a_broker_that_is_away_for_a_moment_ends_no_following(watched, monkeypatch, what):
    request = begun(watched)
    reader, failed = watched.sim.reader, []

    def fail():
        if not failed:
            failed.append(True)
            raise TransientError("Kafka is away", 0.0)

    def failing():
        if what == "reader":
            fail()
        made = reader()
        read_to_end = made.read_to_end
        made.read_to_end = lambda: (fail(), read_to_end())[1]
        return made

    after(watched, 10, lambda: (watched.come(3), goes_on(watched), monkeypatch.setattr(watched.sim, "reader", failing)))
    done = watched.rebalance(request)
    assert failed
    assert done.success
    assert recorded(done)["handover"]["outcome"] == "converged"


def test_the_change_that_a_run_has_found_is_followed_though_it_is_another_than_it_was_asked_for(watched):
    """Nobody else records it: the run has said that it does."""
    request = begun(watched)
    overtaken(watched, request, 3)
    after(watched, 10, lambda: (watched.come(4), goes_on(watched)))
    found = recorded(watched.rebalance(request))
    assert found["consumer_assignment"]["target_offset"] == newest(watched).offset
    assert (found["handover"]["outcome"], found["handover"]["moved_partitions"]) == ("converged", 2)


@pytest.mark.parametrize("state", [RunState.PAUSED, RunState.STOPPED])
def test_a_group_that_is_paused_meanwhile_is_as_it_shall_be(watched, state):
    request = begun(watched)
    after(watched, 10, lambda: (watched.sim.topics.append(DesiredState(state, "me", 0)), watched.evaluate()))
    done = watched.rebalance(request)
    assert done.success
    assert watched.sim.owners() == {}


def test_topics_that_are_gone_are_no_other_change(watched):
    request = begun(watched)
    after(watched, 10, lambda: (watched.come(3), goes_on(watched), setattr(watched.sim, "is_there", False)))
    assert recorded(watched.rebalance(request))["handover"]["outcome"] == "superseded: the group's topics are gone"


@pytest.mark.parametrize("state", [RunState.PAUSED, RunState.STOPPED])
def test_deaths_in_a_group_at_rest_are_recorded_once(watched, state):
    watched.sim.topics.append(DesiredState(state, "me", 0))
    watched.evaluate()
    for process in watched.sim.fleet.living():
        process.kill()
    watched.evaluate()
    writer = watched.sim.topics.writer
    assert watched.evaluate().run_requests == []
    assert watched.sim.topics.writer == writer


# Overtaken runs


@pytest.mark.parametrize("is_record", [True, False])
def test_a_run_does_not_take_back_what_was_found_necessary_before_it_began(watched, is_record):
    """By its own measurement, which is the older one, three consumers were enough."""
    request = begun(watched, 3, 4)
    overtaken(watched, request)
    written = newest(watched)
    assert len({*written.message.assignment.values()}) == 4
    watched.rebalance(request, **({} if is_record else {"written": None}))
    assert newest(watched) == written


def test_what_both_changes_cost_is_recorded(watched):
    request = begun(watched, 3, 4)
    first = newest(watched).message.rscore
    overtaken(watched, request)
    both = first + newest(watched).message.rscore
    found = recorded(watched.rebalance(request))
    assert (first, both) == (0.9, 1.8)
    assert found["consumer_assignment"]["rscore"] == found["rscore"]["rscore"] == both


def test_what_a_record_run_changes_by_itself_is_recorded_beside_what_it_was_asked_for(watched):
    request = begun(watched, 3)
    watched.sim.go_by(40.0)
    watched.come(4)
    watched.sim.publish(**ALL_GROWN)
    found = recorded(watched.rebalance(request))
    assert newest(watched).message.rscore == 0.9
    assert found["consumer_assignment"]["rscore"] == 1.8
    assert found["rscore"]["moved_partitions"] == found["handover"]["moved_partitions"] == 2


def test_a_record_is_made_though_the_run_is_fenced_when_it_writes_something_else(watched, monkeypatch):
    request = begun(watched, 3)
    watched.sim.go_by(40.0)
    watched.sim.publish(**ALL_GROWN)
    controller = watched.sim.controller

    def refused():
        reader, writer = controller()
        write = writer.write
        writer.write = lambda *arguments: (watched.sim.topics.fence_writers(), write(*arguments))[1]
        return reader, writer

    monkeypatch.setattr(watched.sim, "controller", refused)
    found = recorded(watched.rebalance(request))
    assert (found["consumer_assignment"]["is_new"], found["consumer_assignment"]["rscore"]) == (True, 0.9)
    assert found["handover"]["moved_partitions"] == 1


def test_a_change_is_recorded_though_a_run_that_changes_nothing_has_met_it(watched):
    """A better packing was asked for, and before its run begins the load grows."""
    watched.load = dict.fromkeys(FOUR, 20)
    watched.sim.go_by(300.0)
    (request,) = watched.evaluate().run_requests
    waiting = watched.open_run(request, dg.DagsterRunStatus.STARTING)
    watched.come(3)
    watched.load = GROWN
    assert watched.evaluate().run_requests == []
    written = newest(watched)
    assert written.message.assignment[tp("a")] == 3
    watched.instance.report_run_canceled(waiting)
    assert recorded(watched.rebalance(request))["consumer_assignment"]["outcome"].startswith("nothing to do")
    (record,) = watched.evaluate().run_requests
    assert record.run_key == f"g/written-{written.offset}-{written.timestamp_ms}"


# Times


def test_the_times_of_one_change_are_not_counted_from_the_measurement_of_another(timely, monkeypatch):
    """The second one comes between the run's start and its first look."""
    request = begun(timely, 3)
    controller = timely.sim.controller

    def late():
        monkeypatch.setattr(timely.sim, "controller", controller)
        timely.come(4)
        timely.load = ALL_GROWN
        timely.evaluate()
        return controller()

    monkeypatch.setattr(timely.sim, "controller", late)
    found = recorded(timely.rebalance(request))["handover"]
    assert found["moved_partitions"] == 2
    assert "reaction_s" not in found


def test_a_restart_after_a_change_counts_as_unread_and_not_as_the_end_of_the_change(timely):
    request = begun(timely, 3)
    waiting = timely.open_run(request, dg.DagsterRunStatus.STARTING)
    written = newest(timely)
    timely.load = None
    timely.sim.go_by(40.0)
    timely.sim.fleet.of(ConsumerId(2))[0].kill()
    timely.come(2)
    assert timely.evaluate().run_requests == []
    assert newest(timely) == written
    timely.instance.report_run_canceled(waiting)
    found = recorded(timely.rebalance(request))["handover"]
    assert found["moved_partitions"] == 3
    assert found["target_to_started_s"] + found["started_to_handed_over_s"] < 5


def test_a_change_has_its_times_though_the_tick_that_wrote_it_was_lost_and_the_next_one_has_no_measurement(timely):
    """A daemon that dies loses what a tick asks for, and Kafka may be slow to take the next tick's measurement."""
    begun(timely, 3)
    timely.load = None
    timely.sim.go_by(timely.sim.options.membership.max_measurement_age_s + 1)
    (record,) = timely.evaluate().run_requests
    assert not record.run_config["resources"]["rebalance"]["config"]["packs"]
    found = recorded(timely.rebalance(record))
    assert found["write_speeds"]["total_load_bytes_per_s"] == sum(GROWN.values())
    assert found["handover"]["reaction_s"] > 0
