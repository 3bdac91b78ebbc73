"""Ticks of the load sensor, on a simulated group whose time goes by while the sensor sleeps."""

import re
from contextlib import contextmanager

import dagster as dg
import pytest

from kgs_core.control.events import Measured
from kgs_core.errors import PermanentError, TransientError
from kgs_core.model import ConsumerId
from kgs_core.protocol import RunState, Wish
from kgs_dagster.definitions import build_defs
from kgs_dagster.jobs.rebalance import RebalanceRuns
from kgs_dagster.resources import control_resources, group_options
from kgs_dagster.sensors import build_sensors
from kgs_dagster.sensors.long_poll import LENGTH_S, SensorPorts, Timing
from tests.dagster.groups import group as group_of
from tests.sim_group import SimGroup

PACKING = "{packing_capacity_bytes_per_s: 100, consumer_capacity_bytes_per_s: 120, spare_consumers: 0}"
FOUR = {"a": 50, "b": 50, "c": 50, "d": 50}
GROWN = {"a": 90, "b": 90, "c": 50, "d": 50}


class Fleet:
    """The simulated fleet with what a tick needs beyond the core's port."""

    def __init__(self, sim):
        self.sim = sim
        self.stopped = []

    def __getattr__(self, name):
        return getattr(self.sim.fleet, name)

    def stop(self, handle):
        self.stopped.append(handle)
        self.sim.fleet.stop(handle)

    stop_unwanted = stop

    def next_attempt(self, consumer):
        return 1 + sum(process.consumer == consumer for process in self.sim.fleet.processes.values())


class Watched:
    """A group with its sensor and its job. What is asked for at a tick is carried out after it, as by the daemon.

    Attributes:
        load: what is measured; None: it is too early to know any speed.
        errors: what -> errors that its next calls raise.
    """

    def __init__(self, instance):
        self.instance = instance
        self.group = group_of(packing=PACKING, membership="{group_management_timeout_s: 20}")
        self.sim = SimGroup(group_options(self.group))
        self.fleet = Fleet(self.sim)
        self.load = FOUR
        self.errors = {}
        self.cursor = None
        clock = self.sim.clock
        self.runs = RebalanceRuns(instance, self.group)
        timing = Timing(lambda: clock.now, lambda: clock.now, self.sim.go_by)
        (self.sensor,) = build_sensors(self.group, connect=self.connect, timing=timing)
        self.defs = build_defs(control_resources(self.group, connect=self.sim.connect), [self.group])

    @contextmanager
    def connect(self, group, instance):
        assert (group, instance) == (self.group, self.instance)
        self.fail("connect")
        self.inbox = self.sim.inbox()
        yield SensorPorts(self, self.inbox and self, self.fleet, self.runs)

    def fail(self, what):
        if self.errors.get(what):
            raise self.errors[what].pop(0)

    def sample(self):
        self.fail("sample")
        if self.load is None:
            return None
        offset = self.sim.publish(**self.load)
        return Measured(self.sim.measurements[offset][0], offset)

    def read_to_end(self):
        self.fail("read_to_end")
        return self.inbox.read_to_end()

    def poll(self, timeout_s):
        self.fail("poll")
        return self.inbox.reader.poll(timeout_s)

    def evaluate(self):
        """What a tick comes to; nothing of it is carried out."""
        result = self.sensor.evaluate_tick(
            dg.build_sensor_context(instance=self.instance, cursor=self.cursor, definitions=self.defs)
        )
        self.cursor = result.cursor
        return result

    def tick(self):
        """A tick, the pause after it, and everything that it asked for."""
        result = self.evaluate()
        self.sim.go_by(5.0)
        for request in result.run_requests:
            if request.job_name == "rebalance_job":
                assert self.rebalance(request).success
            else:
                self.sim.start(int(request.tags["kgs/consumer"]))
        return result

    def rebalance(self, request, **changes):
        job = self.defs.resolve_job_def("rebalance_job")
        config = {**request.run_config["resources"]["rebalance"]["config"], **changes}
        return job.execute_in_process(
            run_config={"resources": {"rebalance": {"config": config}}},
            instance=self.instance,
            tags=request.tags,
            raise_on_error=False,
        )

    def settle(self):
        for _ in range(8):
            if not self.tick().run_requests:
                return
        raise AssertionError("it goes on asking")

    def open_run(self, request, status=dg.DagsterRunStatus.STARTED):
        """A rebalance run that has not ended; or one that has."""
        return self.instance.create_run_for_job(
            self.defs.resolve_job_def("rebalance_job"), run_config=request.run_config, tags=request.tags, status=status
        )


def keys(result):
    return [request.run_key for request in result.run_requests]


@pytest.fixture
def watched(instance):
    """Two consumers read two partitions each."""
    watched = Watched(instance)
    watched.settle()
    assert watched.sim.owners() == {"a": 1, "b": 1, "c": 2, "d": 2}
    return watched


def test_a_group_comes_up_tick_by_tick(instance):
    """Topics, Target, consumers, orders: each follows from what is there."""
    watched = Watched(instance)
    watched.sim.is_there = False
    first = watched.tick()
    assert keys(first) == ["g/none/0"]
    assert watched.sim.is_there
    assert keys(watched.tick()) == ["g/1/1", "g/2/1"]
    assert keys(watched.tick())[0].startswith("g/0/")
    watched.settle()
    assert watched.sim.owners() == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_a_tick_at_rest_lasts_its_time_and_says_what_it_saw(watched):
    began = watched.sim.clock.now
    result = watched.evaluate()
    assert result.run_requests == []
    assert LENGTH_S - 2 <= watched.sim.clock.now - began <= LENGTH_S
    assert "2 consumers read 4 of 4 partitions" in result.skip_message
    assert "most for consumer 1" in result.skip_message


def test_the_cursor_is_the_offset_of_the_last_measurement(watched):
    result = watched.evaluate()
    assert result.cursor == str(max(watched.sim.measurements))
    watched.load = None
    assert watched.evaluate().cursor == result.cursor


def test_a_tick_ends_when_a_decision_falls(watched):
    began = watched.sim.clock.now
    watched.sim.events.append(
        lambda: watched.sim.clock.now > began + 12 and watched.__dict__.update(load=GROWN) is None
    )
    result = watched.evaluate()
    assert watched.sim.clock.now - began < 14
    (request,) = result.run_requests
    config = request.run_config["resources"]["rebalance"]["config"]
    assert request.run_key == f"g/0/{config['measurement_offset']}"
    assert str(config["measurement_offset"]) == result.cursor
    assert "consumer above consumer_capacity: 1" in config["reason"]
    assert (config["attempt"], config["packs"], config["dry_run"]) == (1, True, False)
    tags = {"kgs/group": "g", "kgs/group-rebalance": "g", "kgs/role": "rebalance", "kgs/target": "0"}
    assert request.tags.items() >= tags.items()


def test_the_same_decision_is_asked_for_under_the_same_key(watched):
    """A tick that is evaluated again after a crash must not start another run."""
    watched.load = GROWN
    measurements, history = dict(watched.sim.measurements), watched.sim.clock.now
    first = keys(watched.evaluate())
    watched.sim.measurements, watched.sim.clock.now = measurements, history
    assert keys(watched.evaluate()) == first


def test_growth_is_carried_out(watched):
    watched.load = GROWN
    watched.settle()
    assert len(set(watched.sim.owners().values())) == 3
    assert sorted({process.consumer for process in watched.sim.fleet.living()}) == [1, 2, 3]


def test_a_dead_consumer_is_started_again_under_its_next_attempt(watched):
    watched.load = None  # so that nothing can be packed
    watched.sim.fleet.of(ConsumerId(2))[0].kill()
    assert keys(watched.tick()) == ["g/2/2"]
    watched.settle()
    assert watched.sim.owners() == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_orders_are_asked_for_without_any_measurement(watched):
    """The monitor may have no right to measure; the Target stands all the same."""
    watched.load = None
    watched.sim.fleet.of(ConsumerId(2))[0].kill()
    watched.tick()
    (request,) = watched.evaluate().run_requests
    config = request.run_config["resources"]["rebalance"]["config"]
    assert (config["packs"], config["measurement_offset"]) == (False, None)
    assert request.run_key == f"g/0/report-{config['report_offset']}"
    assert watched.rebalance(request).success
    assert watched.sim.owners() == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_one_run_at_a_time_and_its_consumers_are_started_meanwhile(watched):
    watched.load = GROWN
    (request,) = watched.evaluate().run_requests
    run = watched.open_run(request)
    held = watched.evaluate()
    assert held.run_requests == []
    assert f"rebalance run {run.run_id[:8]} is in progress" in held.skip_message
    assert "this waits: consumer above consumer_capacity: 1" in held.skip_message
    # What the open run does: it writes the Target, and waits for consumer 3
    assert watched.rebalance(request, measurement_offset=watched.sim.publish(**GROWN)).success
    watched.load = {**GROWN, "c": 90, "d": 90}  # another Target is due already
    assert keys(watched.evaluate()) == ["g/3/1"]


def test_a_run_that_has_ended_holds_up_nobody(watched):
    watched.load = GROWN
    (request,) = watched.evaluate().run_requests
    for status in (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.CANCELED):
        watched.open_run(request, status)
    assert len(watched.evaluate().run_requests) == 1


def test_failed_runs_are_tried_again_ever_later_and_counted(watched):
    watched.load = GROWN
    (request,) = watched.evaluate().run_requests
    for _ in range(3):
        watched.open_run(request, dg.DagsterRunStatus.FAILURE)
    held = watched.evaluate()
    assert held.run_requests == []
    assert re.search(r"the last 3 rebalance runs failed, the next one in [12]\d s: until then", held.skip_message)
    assert watched.runs.next_attempt() == 4


def test_an_outage_is_said_in_a_line(watched):
    watched.errors["connect"] = [PermanentError("Kafka localhost:1: no such address: check it")]
    result = watched.evaluate()
    assert (result.run_requests, result.skip_message) == ([], "Kafka localhost:1: no such address: check it")


@pytest.mark.parametrize("what", ["read_to_end", "poll", "sample"])
def test_what_does_not_answer_is_said_and_tried_again(watched, what):
    watched.errors[what] = [TransientError("Kafka is away")] * 60
    result = watched.evaluate()
    assert result.run_requests == []
    assert result.skip_message.startswith("Kafka is away")
    watched.errors = {}
    watched.load = GROWN
    assert len(watched.evaluate().run_requests) == 1


def test_a_monitor_that_fails_keeps_nobody_from_being_started(watched):
    watched.errors["sample"] = [TransientError("Kafka is away")] * 60
    watched.sim.fleet.of(ConsumerId(2))[0].kill()
    assert keys(watched.evaluate()) == ["g/2/2"]


def test_a_run_that_nobody_wants_is_ended(watched):
    stray = watched.sim.fleet.add(ConsumerId(7))
    stray.started_at += 60
    assert watched.evaluate().run_requests == []
    assert watched.fleet.stopped == [stray.handle]


def test_people_are_heard(watched):
    watched.sim.topics.append(Wish(RunState.PAUSED, "me", 0))
    watched.tick()
    assert watched.sim.owners() == {}
    assert watched.evaluate().skip_message.startswith("people want the group paused")


def test_everybody_silent_is_told_to_the_run(watched):
    for process in watched.sim.fleet.living():
        process.is_frozen = True
    watched.sim.go_by(35)
    (request,) = watched.evaluate().run_requests
    config = request.run_config["resources"]["rebalance"]["config"]
    assert "consumer lost: 1, 2" in config["reason"]
    assert config["report_age_s"] > 30
    assert watched.rebalance(request).success
    assert "consumer lost: 1, 2" in watched.sim.target().reason


def test_two_looks_at_once_are_one_too_many(watched):
    """Dagster gives up a tick after a minute, while its thread goes on."""
    inner = []
    watched.sim.events.append(lambda: inner.append(watched.evaluate()) is None)
    watched.evaluate()
    assert [result.skip_message for result in inner] == ["the look before this one is not over"]
