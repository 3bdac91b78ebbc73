"""A simulated group under the load sensor, tick by tick."""

from contextlib import contextmanager

import dagster as dg

from kgs_dagster.jobs.rebalance import RebalanceRuns
from kgs_dagster.resources import UNFINISHED
from kgs_dagster.sensors.long_poll import SensorPorts, Timing
from kgs_dagster.sensors.partition_load import partition_load_sensor
from tests.dagster.rebalancing import FOUR, GROWN, PACKING, Runs


class Fleet:
    """The simulated fleet with what a tick needs beyond the core's port."""

    launches_pods = False

    def __init__(self, sim):
        self.sim = sim
        self.stopped = []

    def __getattr__(self, name):
        return getattr(self.sim.fleet, name)

    def stop(self, handle):
        self.stopped.append(handle)
        self.sim.fleet.stop(handle)

    stop_unwanted = stop_overdue = stop

    def next_attempt(self, consumer):
        return 1 + sum(process.consumer == consumer for process in self.sim.fleet.processes.values())


class Watched(Runs):
    """A group with its sensor and its job. What is asked for at a tick is carried out after it, as by the daemon.

    Attributes:
        load: what is measured; None: it is too early to know any speed.
        errors: what -> errors that its next calls raise.
    """

    def __init__(self, instance, packing=PACKING):
        super().__init__(instance, "[{topic: a}, {pattern: '.*'}]", packing)
        self.fleet = Fleet(self.sim)
        self.load = FOUR
        self.errors = {}
        self.cursor = None
        clock = self.sim.clock
        self.runs = RebalanceRuns(instance, self.group)
        timing = Timing(lambda: clock.now, lambda: clock.now, self.sim.go_by)
        self.sensor = partition_load_sensor(self.group, connect=self.connect, timing=timing)

    def come(self, *consumers):
        self.sim.start(*consumers)
        self.sim.go_by(3.0)

    def grows(self):
        """A third consumer is there, and the load of three: the next tick writes a change."""
        self.come(3)
        self.load = GROWN

    @contextmanager
    def connect(self, group, instance):
        assert (group, instance) == (self.group, self.instance)
        self.fail("connect")
        yield SensorPorts(self, self, self.fleet, self.runs)

    def reader(self):
        """A `GroupTopicAccess` whose observer may fail."""
        self.read = self.sim.reader()
        return self.read and self

    def controller(self):
        self.fail("controller")
        return self.sim.controller()

    def fail(self, what):
        if self.errors.get(what):
            raise self.errors[what].pop(0)

    def newest(self):
        self.fail("newest")
        if self.load is None:
            return None
        offset = self.sim.publish(**self.load)
        return self.sim.measurements[offset]

    def read_to_end(self):
        self.fail("read_to_end")
        return self.read.read_to_end()

    def poll(self, timeout_s):
        self.fail("poll")
        return self.read.poll(timeout_s)

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
                assert self.is_sound(self.rebalance(request))
            else:
                self.sim.start(int(request.tags["kgs/consumer"]))
        return result

    def asked(self):
        """The configuration of the one rebalance run that a tick asks for."""
        (request,) = self.evaluate().run_requests
        return config_of(request)

    def rebalance(self, request, **changes):
        return self.run(tags=request.tags, **{**config_of(request), **changes})

    def is_sound(self, done):
        """Whether nothing went wrong in a run: consumers come after it here, so it may have handed nothing over."""
        return done.success or UNFINISHED in self.instance.get_run_by_id(done.run_id).tags

    def settle(self):
        for _ in range(8):
            if not self.tick().run_requests:
                return
        raise AssertionError("it goes on asking")

    def keep(self, result):
        """What a tick says of checks is kept, as by the daemon; gives it."""
        for event in result.asset_events:
            self.instance.report_runless_asset_event(event)
        return result.asset_events

    def open_run(self, request, status=dg.DagsterRunStatus.STARTED):
        """A rebalance run that has not ended; or one that has."""
        return self.instance.create_run_for_job(
            self.defs.resolve_job_def("rebalance_job"), run_config=request.run_config, tags=request.tags, status=status
        )


def config_of(request):
    return request.run_config["resources"]["rebalance"]["config"]
