"""Consumers as Jobs of a Kubernetes cluster, one for each start: asked for, mended, and known to be dead.

The cluster is the fleet's memory. A thread looks at all Jobs and pods of the group again and again, and does what
follows from that look; no event is waited for, so none can be missed. The controller never waits for the cluster: while
that does not answer, runs are as they were last, what is asked for is done later, and nobody is dead.
"""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kgs_core.config import Settings
from kgs_core.errors import ConfigError, PermanentError, PortError, TransientError
from kgs_core.fleet.controller_fleet import FleetOptions
from kgs_core.fleet.kubernetes_api import KubernetesApi, connect
from kgs_core.fleet.kubernetes_jobs import ConsumerJobs, JobRun, living_pods, read_runs
from kgs_core.fleet.pod_process import PodProcess
from kgs_core.group.protocol import Process
from kgs_core.model import ConsumerId
from kgs_core.ports import Run

LOOK_EVERY_S = 2.0
_REMEMBERED_S = 3600.0
_POLL_S = 0.2
_KILL_GRACE_S = 1
_KILL_TIMEOUT_S = 30.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Ask:
    """A start that no Job is known of yet. With the same attempt it is asked for again: there is one Job at most."""

    handle: str
    at: float
    consumer_class: str = ""
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class _Ended:
    """A run that the cluster does not show any more, or has refused."""

    run: Run
    at: float


@dataclass(frozen=True, slots=True)
class _Look:
    runs: dict[str, JobRun] = field(default_factory=dict)
    living: frozenset[str] = frozenset()


class KubernetesFleet:
    """The consumers of one group in one namespace. `turn` is for one thread, everything else for any."""

    def __init__(self, jobs: ConsumerJobs, api: KubernetesApi, clock: Callable[[], float] = time.monotonic) -> None:
        self._jobs = jobs
        self._api = api
        self._clock = clock
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._numbers = itertools.count(1)
        self._look = _Look()
        self._asks: dict[ConsumerId, _Ask] = {}
        self._stops: set[str] = set()
        self._ended: dict[str, _Ended] = {}
        self._attempts: dict[ConsumerId, int] = {}
        self._questions: dict[str, tuple[str, float]] = {}
        self._dead: set[str] = set()
        self._said: dict[str, str] = {}

    def runs(self) -> Sequence[Run]:
        """Every run that has not ended, and those that ended within the last hour, as the last look has found them."""
        with self._lock:
            now, wall = self._clock(), time.time()
            found = [
                Run(run.consumer, run.handle, max(0.0, wall - run.created_s), run.is_over, run.exit_code, run.trouble)
                for run in self._look.runs.values()
            ]
            found += [
                Run(consumer, ask.handle, now - ask.at, is_over=False, why=self._said.get(ask.handle, ""))
                for consumer, ask in self._asks.items()
            ]
            found += [replace(each.run, started_s=each.run.started_s + now - each.at) for each in self._ended.values()]
        return tuple(sorted(found, key=lambda run: (run.consumer, -run.started_s)))

    def start(self, consumer: ConsumerId, consumer_class: str = "") -> Run:
        """Ask for one Job for this consumer; where one has not ended, that is returned instead."""
        with self._lock:
            running = [run for run in self.runs() if run.consumer == consumer and not run.is_over]
            if running:
                _log.warning("not started: it runs already consumer=%d run=%s", consumer, running[-1].handle)
                return running[-1]
            handle = f"asked/{consumer}/{next(self._numbers)}"
            ask = self._asks[consumer] = _Ask(handle, self._clock(), consumer_class)
        self._wake.set()
        return Run(consumer, ask.handle, 0.0, is_over=False)

    def stop(self, handle: str) -> None:
        """Ask a run to drain and end: its Job is deleted, its pod has its grace period; nothing where it is over."""
        with self._lock:
            asked = next((consumer for consumer, ask in self._asks.items() if ask.handle == handle), None)
            if asked is not None:
                self._give_up(asked, self._said.get(handle, ""))
            elif handle in self._look.runs:
                self._stops.add(handle)
        self._wake.set()

    def is_dead(self, process: Process) -> bool | None:
        """Whether this process is gone for certain: its pod, told by its uid, has ended or is not there any more.

        None where that is not known: the pod is another cluster's or namespace's, its node is lost, or the cluster has
        not been asked yet since.
        """
        pod = PodProcess.of(process)
        if pod is None or (pod.cluster, pod.namespace) != (self._api.cluster, self._api.namespace):
            return None
        with self._lock:
            self._questions[pod.uid] = (pod.pod, self._clock())
            if pod.uid in self._dead:
                return True
            return False if pod.uid in self._look.living else None

    def end_all(self, timeout_s: float, interrupt: Callable[[], bool] = lambda: False) -> tuple[ConsumerId, ...]:
        """See `ControllerFleet`.

        Raises:
            PortError: the cluster does not answer, or refuses it.
        """
        deadline = self._clock() + timeout_s
        while left := [run for run in self.runs() if not run.is_over]:
            for run in left:
                self.stop(run.handle)
            if interrupt() or self._clock() > deadline:
                break
            time.sleep(_POLL_S)
        for run in left:
            with self._lock:
                seen = self._look.runs.get(run.handle)
            for name, uid in seen.living if seen is not None else ():
                self._api.delete_pod(name, uid, _KILL_GRACE_S)
        deadline = self._clock() + _KILL_TIMEOUT_S
        while any(not run.is_over for run in self.runs()) and self._clock() < deadline:
            time.sleep(_POLL_S)
        return tuple(run.consumer for run in left)

    def keep(self) -> None:
        """Look and mend for ever, every other second and whenever something is asked for; in a thread of its own."""
        while True:
            try:
                self.turn()
                self._say("look", "")
            except PortError as e:
                self._say("look", str(e))
            except Exception:  # noqa: BLE001 - what nobody has thought of must not leave the group without a fleet
                _log.exception("a look at the cluster failed")
            self._wake.wait(LOOK_EVERY_S)
            self._wake.clear()

    def turn(self) -> None:
        """One look at the cluster, and what follows from it.

        Raises:
            TransientError: no answer: nothing is known, and nothing was done.
        """
        jobs = self._api.jobs(self._jobs.selector)
        pods = self._api.pods(self._jobs.selector)  # after the Jobs: see `read_runs`
        with self._lock:
            self._take(_Look(read_runs(jobs, pods), living_pods(pods)))
            runs, stops = tuple(self._look.runs.values()), frozenset(self._stops)
            asks, questions = dict(self._asks), dict(self._questions)
        for run in runs:
            if not run.is_over and (run.handle in stops or run.is_suspended):
                self._trying(run.handle, lambda run=run: self._end(run))  # type: ignore[misc]
        for consumer, ask in asks.items():
            self._create(consumer, ask)
        for uid, (name, _) in questions.items():
            if uid not in self._look.living:
                self._trying(f"pod {name}", lambda uid=uid, name=name: self._ask_for(name, uid))  # type: ignore[misc]

    def _take(self, look: _Look) -> None:
        now = self._clock()
        for handle, before in self._look.runs.items():
            if handle not in look.runs:
                code = before.exit_code if before.is_over else None
                age_s = max(0.0, time.time() - before.created_s)
                ended = Run(before.consumer, handle, age_s, is_over=True, exit_code=code, why=before.trouble)
                self._ended[handle] = _Ended(ended, now)
        for run in look.runs.values():
            self._attempts[run.consumer] = max(self._attempts.get(run.consumer, 0), run.attempt)
            ask = self._asks.get(run.consumer)
            if ask is not None and (not run.is_over or run.attempt >= ask.attempt > 0):
                del self._asks[run.consumer]
            self._say_of(run)
        self._look = look
        self._stops &= look.runs.keys()
        self._ended = {handle: each for handle, each in self._ended.items() if now - each.at < _REMEMBERED_S}
        self._questions = {uid: each for uid, each in self._questions.items() if now - each[1] < _REMEMBERED_S}
        self._dead &= self._questions.keys()
        known = {
            *look.runs,
            *(ask.handle for ask in self._asks.values()),
            *(f"pod {name}" for name, _ in self._questions.values()),
            "look",
        }
        self._said = {about: words for about, words in self._said.items() if about in known}

    def _create(self, consumer: ConsumerId, ask: _Ask) -> None:
        ask.attempt = ask.attempt or self._attempts.get(consumer, 0) + 1
        job = self._jobs.job(consumer, ask.attempt, ask.consumer_class)
        try:
            if self._api.create_job(job):
                _log.info("consumer=%d is started job=%s", consumer, job["metadata"]["name"])
        except TransientError as e:
            self._say(ask.handle, str(e))
        except PermanentError as e:
            with self._lock:
                if self._asks.get(consumer) is ask:
                    _log.error("consumer=%d cannot be started: %s", consumer, e)
                    self._give_up(consumer, str(e))

    def _give_up(self, consumer: ConsumerId, why: str) -> None:
        ask, now = self._asks.pop(consumer), self._clock()
        run = Run(consumer, ask.handle, now - ask.at, is_over=True, exit_code=1, why=why)
        self._ended[ask.handle] = _Ended(run, now)

    def _end(self, run: JobRun) -> None:
        if run.is_suspended and run.handle not in self._stops:
            _log.warning("consumer=%d is replaced: its job was suspended job=%s", run.consumer, run.name)
        if run.has_job and not run.is_ending:
            self._api.delete_job(run.name, run.handle)
        elif not run.has_job:
            for name, uid in run.living:
                self._api.delete_pod(name, uid)

    def _ask_for(self, name: str, uid: str) -> None:
        """A pod that no look shows may have lost our label: it is asked for by its name."""
        pod = self._api.pod(name)
        if pod is None or pod["metadata"]["uid"] != uid or not living_pods([pod]):
            with self._lock:
                self._dead.add(uid)

    def _trying(self, about: str, do: Callable[[], None]) -> None:
        """What fails is tried again with the next look; the others do not wait for it."""
        try:
            do()
        except PortError as e:
            self._say(about, str(e))

    def _say_of(self, run: JobRun) -> None:
        if run.trouble:
            state = "ended" if run.is_over else "does not run"
            self._say(run.handle, f"consumer {run.consumer} {state}: job {run.name}: {run.trouble}")

    def _say(self, about: str, words: str) -> None:
        """Once, not every two seconds."""
        with self._lock:
            if words and self._said.get(about) != words:
                _log.warning("%s", words)
            self._said[about] = words


def kubernetes_fleet(settings: Settings, options: FleetOptions) -> KubernetesFleet:
    """The consumers of the group in the cluster that KUBECONFIG names, or that this pod is in. Looks once.

    Raises:
        ConfigError: no image is named, or consumers are to end with a process of this machine.
        PortError: there is no cluster, it does not answer, or it refuses to show Jobs and pods.
    """
    if options.consumers_end_with is not None:
        raise ConfigError(["--end-with: consumers in a cluster cannot see a process of this machine: leave it out"])
    api = connect()
    fleet = KubernetesFleet(ConsumerJobs(settings, api.namespace, api.cluster), api)
    fleet.turn()
    _log.info("consumers are Jobs namespace=%s", api.namespace)
    threading.Thread(target=fleet.keep, name="kubernetes-fleet", daemon=True).start()
    return fleet
