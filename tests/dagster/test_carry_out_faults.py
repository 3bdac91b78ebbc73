"""Faults around changes that a tick carries out itself, and around the runs that record them.

Each test states what should hold.
"""

import time
from dataclasses import replace

import dagster as dg
import pytest
from dagster._core.storage.tags import RUN_KEY_TAG

from kgs_core.errors import MeasurementError, TransientError
from kgs_core.group.protocol import MemberAssignment, Target
from kgs_core.model import ConsumerId
from kgs_core.runtime.rebalance_ports import Reference
from kgs_core.runtime.rebalance_run import RebalanceRun
from kgs_dagster.jobs.rebalance import RECORDED_WITHIN_S
from kgs_dagster.sensors import long_poll, partition_load
from tests.dagster.rebalancing import FOUR, GROWN
from tests.dagster.results import recorded
from tests.dagster.ticking import config_of
from tests.sim_group import tp
from tests.world.topics import TARGETS


class Daemon:
    """Makes runs of what a tick asks for, as Dagster's daemon does: each key once, whatever has become of its run."""

    def __init__(self, watched):
        self.watched = watched
        self.made = []
        self.skipped = []

    def tick(self, end=None):
        """A tick; its rebalance runs are carried out, or end at once with the status `end`."""
        watched = self.watched
        for request in watched.evaluate().run_requests:
            if request.job_name != "rebalance_job":
                watched.sim.start(int(request.tags["kgs/consumer"]))
                continue
            found = watched.instance.get_run_ids(dg.RunsFilter(tags={RUN_KEY_TAG: request.run_key}))
            if found:
                self.skipped.append(request.run_key)
                continue
            self.made.append(request.run_key)
            keyed = {**request.tags, RUN_KEY_TAG: request.run_key}
            if end is None:
                watched.run(tags=keyed, **config_of(request))
            else:
                job = watched.defs.resolve_job_def("rebalance_job")
                watched.instance.create_run_for_job(job, tags={**job.tags, **keyed}, status=end)


@pytest.fixture
def daemon(watched):
    return Daemon(watched)


def is_recorded(watched):
    return watched.runs.is_recorded(watched.sim.topics.log(TARGETS)[-1], watched.sim.clock.now)


# Record runs that do not come


@pytest.mark.parametrize("end", [dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.FAILURE])
def test_a_record_is_asked_for_once_whatever_becomes_of_its_run(daemon, end):
    daemon.watched.grows()
    daemon.tick(end)
    made = list(daemon.made)
    for _ in range(4):
        daemon.tick()
    assert (daemon.made, daemon.skipped) == (made, [])


def test_runs_by_hand_do_not_hide_what_is_recorded(daemon):
    daemon.watched.grows()
    daemon.tick()
    assert is_recorded(daemon.watched)
    for _ in range(10):
        assert daemon.watched.run("write_speeds", "consumer_assignment").success
    assert is_recorded(daemon.watched)
    daemon.tick()
    assert daemon.skipped == []


@pytest.mark.parametrize("end", [None, dg.DagsterRunStatus.CANCELED])
def test_silence_is_noticed_while_a_record_does_not_come(daemon, end):
    """A tick that asks for something ends at once, and who listens for no time suspects nobody."""
    daemon.watched.grows()
    daemon.tick(end)
    watched = daemon.watched
    watched.sim.fleet.is_blind = True  # its machine is gone
    watched.sim.fleet.of(ConsumerId(2))[0].kill()
    began = watched.sim.clock.now
    while watched.sim.clock.now < began + 300 and watched.sim.owners().keys() < FOUR.keys():
        daemon.tick()
        watched.sim.go_by(1.0)
    assert watched.sim.owners().keys() == FOUR.keys()
    assert watched.sim.clock.now - began < 90


def test_a_take_over_without_a_measurement_is_recorded_without_one(watched):
    """The Target keeps the offset of the measurement that its shares were packed by, long ago."""
    watched.sim.start(3)  # idle
    watched.sim.go_by(60.0)
    watched.load = None
    watched.sim.go_by(40.0)
    watched.sim.fleet.of(ConsumerId(2))[0].kill()
    watched.sim.go_by(5.0)
    (request,) = watched.evaluate().run_requests
    assert watched.sim.owners() == {"a": 1, "b": 1, "c": 3, "d": 3}

    def measure():
        raise MeasurementError("no right to measure")

    watched.sim.measure = measure
    watched.rebalance(request)
    assert is_recorded(watched)


# What happens between the write and the request


def test_a_change_that_was_written_before_an_error_is_recorded_as_new(watched, monkeypatch):
    """Dagster's database is locked for a moment, behind the write."""
    watched.grows()
    targets = len(watched.sim.topics.log(TARGETS))
    runs = type(watched.sim.fleet).runs
    failed = []

    def locked(fleet):
        if len(watched.sim.topics.log(TARGETS)) > targets and not failed:
            failed.append(True)
            raise TransientError("Dagster: runs cannot be read: database is locked")
        return runs(fleet)

    monkeypatch.setattr(type(watched.sim.fleet), "runs", locked)
    result = watched.evaluate()
    assert failed
    found = recorded(watched.rebalance(result.run_requests[-1]))
    watched.settle()
    assert found["consumer_assignment"]["outcome"] == "a new Target"


def test_a_tick_that_another_one_was_faster_than_records_what_that_has_written(watched, monkeypatch):
    """Two daemons, or a tick that Dagster has given up: of the two, this one has the last word to Dagster."""
    watched.grows()
    controller = watched.sim.controller

    def overtaken():
        reader, writer = controller()
        read = reader.read_to_end

        def read_to_end():
            found = read()
            monkeypatch.setattr(watched.sim, "controller", controller)
            reference = Reference(max(watched.sim.measurements))
            RebalanceRun("g", watched.sim.options, reference, watched.sim.ports).carry_out(5.0)
            return found

        reader.read_to_end = read_to_end
        return reader, writer

    monkeypatch.setattr(watched.sim, "controller", overtaken)
    found = recorded(watched.rebalance(watched.evaluate().run_requests[-1]))
    assert found["consumer_assignment"]["outcome"] == "a new Target"


def test_a_write_that_took_all_the_patience_is_not_taken_for_none(watched, monkeypatch):
    monkeypatch.setattr(long_poll, "CARRY_OUT_S", 0.5)
    writer = watched.sim.controller()[1]
    write = type(writer).write

    def slow(self, *arguments):
        written = write(self, *arguments)
        time.sleep(1.0)
        return written

    monkeypatch.setattr(type(writer), "write", slow)
    watched.grows()
    request = watched.evaluate().run_requests[-1]
    assert watched.sim.target().assignment[tp("a")] == 3, "it is written"
    assert "written" in request.run_key


def test_nobody_is_started_for_the_target_before(watched, monkeypatch):
    """The reader gives out what was written a second late."""
    watched.come(3)
    watched.sim.fleet.of(ConsumerId(2))[0].kill()
    watched.load = dict.fromkeys(FOUR, 50)
    targets = len(watched.sim.topics.log(TARGETS))

    def poll(timeout_s):
        got = watched.read.poll(timeout_s)
        late = [m for m in got if isinstance(m.message, Target | MemberAssignment)]
        return [m for m in got if m not in late]

    monkeypatch.setattr(watched, "poll", poll)
    result = watched.evaluate()
    assert len(watched.sim.topics.log(TARGETS)) > targets
    wanted = {*watched.sim.target().assignment.values(), *watched.sim.target().spares}
    started = {int(r.tags["kgs/consumer"]) for r in result.run_requests if "kgs/consumer" in r.tags}
    assert started <= wanted, (started, wanted)


# What need not be done at once


def test_a_better_packing_waits_for_its_run_though_a_death_is_recorded(watched):
    watched.load = None
    watched.sim.fleet.is_blind = True
    watched.sim.start(7)
    watched.sim.go_by(3.0)
    watched.sim.fleet.of(ConsumerId(7))[0].kill()
    watched.sim.go_by(300.0)
    watched.evaluate()
    watched.sim.fleet.is_blind = False
    watched.load = dict.fromkeys(FOUR, 20)
    targets, writer = len(watched.sim.topics.log(TARGETS)), watched.sim.topics.writer
    assert watched.asked()["reason"] == "looking for a better packing"
    assert watched.sim.topics.writer > writer, "the death is recorded"
    assert len(watched.sim.topics.log(TARGETS)) == targets


# What waits though it need not


def test_who_has_come_reads_at_once_though_a_change_that_can_wait_is_due(watched, monkeypatch):
    """Runs fail for ever (an image that cannot be pulled), and kgs.yaml wants another number of spares."""
    options = partition_load.controller_options

    def with_a_spare(settings):
        found = options(settings)
        return replace(found, packing=found.packing.model_copy(update={"spare_consumers": 1}))

    monkeypatch.setattr(partition_load, "controller_options", with_a_spare)
    *_, request = watched.evaluate().run_requests
    assert "written" not in request.run_key, "spares can wait for a run"
    for _ in range(5):
        watched.open_run(request, dg.DagsterRunStatus.FAILURE)
    watched.load = None
    watched.sim.fleet.of(ConsumerId(2))[0].kill()
    watched.sim.go_by(2.0)
    watched.sim.start(2)
    watched.sim.go_by(3.0)
    watched.evaluate()
    assert watched.sim.owners() == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_a_record_run_that_begins_beside_a_silent_consumer_packs_without_it(watched):
    """The Target's measurement is too old to pack by then: the run looks for a newer one, for it alone may write."""
    watched.come(3)
    watched.sim.fleet.of(ConsumerId(2))[0].is_frozen = True
    watched.load = GROWN
    (request,) = watched.evaluate().run_requests
    watched.sim.go_by(35.0)
    watched.sim.publish(**GROWN)
    watched.rebalance(request)
    assert 2 not in watched.sim.target().assignment.values()


# What is recorded


def test_a_group_whose_topics_were_made_anew_is_recorded(watched):
    """Offsets begin again at 0, and an older Dagster database has seen greater ones."""
    key = watched.group.key("consumer_assignment")
    watched.instance.report_runless_asset_event(dg.AssetMaterialization(asset_key=key, metadata={"target_offset": 500}))
    watched.grows()
    assert [r for r in watched.evaluate().run_requests if "written" in r.run_key]


def test_a_target_of_long_ago_is_recorded_by_nobody(watched):
    """Of a database that was lost or pruned, or of a group that `kgs control` ran: its gaps cannot be told any more."""
    watched.load = None
    for run_id in watched.instance.get_run_ids():
        watched.instance.delete_run(run_id)
    watched.sim.go_by(RECORDED_WITHIN_S)
    assert watched.evaluate().run_requests == []
