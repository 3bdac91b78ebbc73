"""Consumers as Dagster runs: how one is asked for, which there are, and which are known to be dead.

A consumer is a run of `consumer_job`, found again by its tags: Dagster's database is the fleet's memory. Losing it
doubles nothing: a consumer with a fresh report is not started, and the lake refuses what a twin would write twice.
"""

import json
import signal
import time
from collections.abc import Callable, Collection, Mapping

import dagster as dg

from kgs_core.errors import PermanentError
from kgs_core.fleet.consumer_pod import LAST_WORDS_S, grace_period_s
from kgs_core.fleet.host_process import HostProcess, is_gone
from kgs_core.group.protocol import Process
from kgs_core.group.view.restart_policy import retry_after_s
from kgs_core.model import ConsumerId
from kgs_core.ports import Run
from kgs_dagster.pods import api_of, delete_jobs_of, in_cluster, pod_template, pods_are_gone, runs_without_pods
from kgs_dagster.run_process import ENDED, NOT_ENDED, ask_to_end, database, process_of, send_signal
from kgs_dagster.run_records import RunRecords
from kgs_dagster.settings import GroupConfig

GROUP, CONSUMER, ROLE = "kgs/group", "kgs/consumer", "kgs/role"
ATTEMPT, INCARNATION = ".dagster/kgs-attempt", ".dagster/kgs-incarnation"
"""Tags that begin so are not shown in lists of runs."""
UNWANTED = "kgs/unwanted"
"""Its end is no failure. Said by a tag, so that whoever counts failed starts later knows it, too."""
WHY = "kgs/why"
"""Why a run was asked to end, in few words: it may be red or gray for hours, and somebody will ask."""
REASON, TABLE = "kgs/reason", "kgs/table"
"""Why a rebalance was asked for, and which table a run is about."""
POD = "dagster-k8s/config"
CONSUMER_ROLE = "consumer"
CONSUMER_JOB, CONSUME_OP = "consumer_job", "consume"

_NOT_LAUNCHED = (dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.QUEUED)
_EXIT_CODES = {dg.DagsterRunStatus.SUCCESS: 0, dg.DagsterRunStatus.FAILURE: 1}
_REMEMBERED_S = 3600.0
_LONGEST_MEMORY_S = 30 * 86_400.0
_SAME_LOOK_S = 0.5
_PODS_EVERY_S, _PODS_PATIENCE, _PODS_AGAIN_S = 1.0, 5.0, 30.0
"""Between two looks at all pods of the group, by a factor more where they take long; after one without an answer."""
_POD_LOOK_TIMEOUT_S = (1.0, 2.0)
"""Every look at the group waits for it, and without an answer Dagster tells of a death, only later."""
_ATTEMPTS_LOOKED_AT = 100
_LATE_JOB_S = 120.0
"""Until the Job of a run that is over is deleted: see `delete_late_jobs`, which is asked for twice a minute."""


def attempt_of(tags: Mapping[str, str]) -> str:
    """Which start of a consumer, or which try of a rebalance, a run is; empty where it does not say."""
    return tags.get(ATTEMPT, "")


def consumer_tags(group: GroupConfig, consumer: ConsumerId) -> dict[str, str]:
    """What a consumer's run is found by."""
    return {GROUP: group.name, CONSUMER: str(consumer), ROLE: CONSUMER_ROLE}


def consumer_run_request(
    group: GroupConfig, consumer: ConsumerId, attempt: int, *, consumer_class: str = "", as_pod: bool = False
) -> dg.RunRequest:
    """One more start of a consumer; Dagster starts the same attempt once, however often it is asked for.

    Only for a pod it says what a pod is made of: else that would stand in the way of who reads its tags.
    """
    pod = {POD: json.dumps(pod_template(group, consumer, consumer_class))} if as_pod else {}
    of_class = {"consumer_class": consumer_class} if consumer_class else {}
    return dg.RunRequest(
        run_key=f"{group.name}/{consumer}/{attempt}",
        job_name=f"{CONSUMER_JOB}{group.suffix}",
        run_config={"ops": {f"{CONSUME_OP}{group.suffix}": {"config": {"consumer": int(consumer), **of_class}}}},
        tags={**consumer_tags(group, consumer), ATTEMPT: str(attempt), **pod},
    )


class DagsterFleet:
    """The consumers of one group as runs of a Dagster instance: see `kgs_core.ports.Fleet`."""

    def __init__(
        self,
        instance: dg.DagsterInstance,
        group: GroupConfig,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._instance = instance
        self._group = group
        self._clock = clock
        self._records = RunRecords(instance, {GROUP: group.name, ROLE: CONSUMER_ROLE})
        self._unwanted: set[str] | None = None
        self._pods_due_s = float("-inf")
        self._without_pods: frozenset[str] = frozenset()

    def runs(self) -> tuple[Run, ...]:
        """Every run that has not ended, and those that ended of late but the unwanted; oldest first.

        Raises:
            TransientError: Dagster's database does not answer.
        """
        now = self._clock()
        with database("runs cannot be read"):
            if self._unwanted is None:
                wanted = dg.RunsFilter(tags={GROUP: self._group.name, UNWANTED: "true"})
                self._unwanted = {*self._instance.get_run_ids(wanted)}
            unwanted = self._unwanted
            memory_s = min(max(_REMEMBERED_S, retry_after_s(self._group.settings.membership)), _LONGEST_MEMORY_S)
            self._look_at_pods()  # first: a run that ends well in between has said so
            runs = [self._run(record, now) for record in self._records.look(now, memory_s)]
        return tuple(run for run in runs if run is not None and not (run.is_over and run.handle in unwanted))

    @property
    def launches_pods(self) -> bool:
        """Whether its runs are pods."""
        return in_cluster(self._instance)

    def next_attempt(self, consumer: ConsumerId) -> int:
        """Number of the attempt to ask for: the highest of the newest runs, and one; 1 where there is none.

        The newest may be an older one that somebody has executed again, with its tags: Dagster passes over in silence
        what was asked for before.
        """
        wanted = dg.RunsFilter(tags=consumer_tags(self._group, consumer))
        with database("runs cannot be read"):
            newest = self._instance.get_run_records(wanted, limit=_ATTEMPTS_LOOKED_AT)
        attempts = [attempt_of(record.dagster_run.tags) for record in newest]
        return max((int(attempt) for attempt in attempts if attempt.isdigit()), default=0) + 1

    def start(self, consumer: ConsumerId, consumer_class: str = "") -> Run:
        """Refused: runs are started by those who ask Dagster for them.

        Raises:
            PermanentError: always.
        """
        of_class = f" of class {consumer_class}" if consumer_class else ""
        raise PermanentError(f"consumer {consumer}{of_class}: cannot be started from here: the load sensor does that")

    def stop(self, handle: str, why: str = "") -> None:
        """Ask a run to drain and end, and note why; nothing where it has ended, or was asked before.

        Raises:
            TransientError: it could not be asked.
        """
        with database(f"run {handle} cannot be stopped"):
            run = self._instance.get_run_by_id(handle)
            if run is None or run.status in (*ENDED, dg.DagsterRunStatus.CANCELING):
                return
            if why:
                self._instance.add_run_tags(handle, {WHY: why})
                self._instance.report_engine_event(f"kgs asks this run to end: {why}", run)
            ask_to_end(self._instance, run)

    def stop_unwanted(self, handle: str) -> None:
        """As `stop`, and nobody is to blame. Killed in between: the next one finds it unwanted again."""
        with database("runs cannot be marked"):
            self._instance.add_run_tags(handle, {UNWANTED: "true"})
        if self._unwanted is not None:
            self._unwanted.add(handle)
        self.stop(handle, "it is no longer wanted")

    def stop_overdue(self, handle: str) -> None:
        """As `stop`, of a run that has not reported in time.

        Raises:
            TransientError: it could not be asked.
        """
        self.stop(handle, f"no report within {self._group.settings.membership.start_timeout_s:g} s")

    def is_dead(self, process: Process) -> bool | None:
        """Whether a process is gone for certain: its run is over, too, or Dagster has never heard of it.

        None when that cannot be told from here, and while its run counts as running: see `close_lost_runs`. In a
        cluster a run's pods tell it before Dagster has noticed.

        Raises:
            TransientError: Dagster's database does not answer.
        """
        with database("runs cannot be read"):
            if process.run_id in self._without_pods:
                return True
            is_over = self._is_over(process.run_id)
            # A cluster is asked about few: each of a hundred consumers, every second, would be too much for it
            gone = None if not is_over and in_cluster(self._instance) else self._is_gone(process)
        return gone if is_over or not gone else None

    def close_lost_runs(self) -> tuple[str, ...]:
        """Mark as over what counts as running and cannot be: nobody else does, where the machine itself went down.

        All runs of the group, not only consumers: each writes its process on itself when it begins (`claim_run`).
        A consumer on this host that was asked to end and is deaf is killed first. In a cluster run monitoring sees
        that a run's pod is gone, but not once the run was asked to end: such runs alone are closed here.

        Returns:
            Their handles.

        Raises:
            TransientError: Dagster's database does not answer.
        """
        now = self._clock()
        lost = []
        with database("lost runs cannot be closed"):
            wanted = dg.RunsFilter(tags={GROUP: self._group.name}, statuses=list(NOT_ENDED))
            for record in self._instance.get_run_records(wanted):
                why = self._why_lost(record, now)
                run = self._instance.get_run_by_id(record.dagster_run.run_id) if why else None
                if why and run is not None and run.status not in ENDED:  # its own last word counts
                    is_asked = run.status is dg.DagsterRunStatus.CANCELING
                    report = self._instance.report_run_canceled if is_asked else self._instance.report_run_failed
                    report(run, why)
                    lost.append(run.run_id)
        return tuple(lost)

    def delete_late_jobs(self) -> tuple[str, ...]:
        """Delete the Jobs of this group's runs that are over, and have been for longer than a last word takes.

        Run monitoring marks a run as failed and leaves its Job: a pod that could not be scheduled would start later,
        and one that reads would go on for ever. Nothing where runs are no pods.

        Returns:
            The runs.

        Raises:
            PortError: Dagster's database or the cluster does not answer, or refuses it.
        """
        if not in_cluster(self._instance):
            return ()
        before = self._clock() - LAST_WORDS_S

        def over(run_ids: Collection[str]) -> list[str]:
            if not run_ids:
                return []
            wanted = dg.RunsFilter(run_ids=list(run_ids), tags={GROUP: self._group.name}, statuses=list(ENDED))
            records = self._instance.get_run_records(wanted)
            return [record.dagster_run.run_id for record in records if _ended_s(record) < before]

        with database("Jobs of runs that are over cannot be deleted"):
            return delete_jobs_of(api_of(self._instance.run_launcher), over)

    def _look_at_pods(self) -> None:
        now = self._clock()
        if not in_cluster(self._instance) or now < self._pods_due_s:
            return
        api = api_of(self._instance.run_launcher, _POD_LOOK_TIMEOUT_S)
        found = runs_without_pods(api, self._group.name)
        self._without_pods |= found or frozenset()
        took_s = self._clock() - now
        self._pods_due_s = now + (_PODS_AGAIN_S if found is None else max(_PODS_EVERY_S, _PODS_PATIENCE * took_s))

    def _is_over(self, run_id: str) -> bool:
        """Whether a run has ended, or is unknown; as `runs` has found it, where that was just now."""
        if not run_id:
            return True
        if run_id in self._records.open and self._clock() - self._records.looked_s < _SAME_LOOK_S:
            return False
        run = self._instance.get_run_by_id(run_id)
        return run is None or run.status in ENDED

    def _why_lost(self, record: dg.RunRecord, now: float) -> str | None:
        run = record.dagster_run
        if run.status in _NOT_LAUNCHED:
            return None
        if in_cluster(self._instance):
            is_asked = run.status is dg.DagsterRunStatus.CANCELING
            is_lost = is_asked and pods_are_gone(api_of(self._instance.run_launcher), run.run_id)
            return "its pod is gone, and left no event" if is_lost else None
        process = process_of(run.tags)
        if process is not None:
            self._kill_if_deaf(record, process, now)
            where = f"process {process.pid} on {process.host}"
            return f"{where} is gone, and left no event" if process.is_gone() else None
        limit_s = 2 * self._group.settings.membership.start_timeout_s
        if now - record.update_timestamp.timestamp() > limit_s:
            return f"launched, but for {limit_s:g} s (2 x start_timeout_s) no process of it has been heard of"
        return None

    def _kill_if_deaf(self, record: dg.RunRecord, process: HostProcess, now: float) -> None:
        """Whoever was to tell it that it shall end may be gone, and then it would read for ever."""
        is_asked = record.dagster_run.status is dg.DagsterRunStatus.CANCELING
        is_overdue = now - record.update_timestamp.timestamp() > grace_period_s(self._group.settings)
        if is_asked and is_overdue and CONSUMER in record.dagster_run.tags:
            send_signal(process, record.dagster_run.run_id, signal.SIGKILL)

    def _run(self, record: dg.RunRecord, now: float) -> Run | None:
        run = record.dagster_run
        number = run.tags.get(CONSUMER, "")
        if not number.isdigit():
            return None
        is_over = run.run_id in self._without_pods or (run.status in ENDED and not self._still_lives(record, now))
        age_s = max(0.0, now - record.create_timestamp.timestamp())
        return Run(ConsumerId(int(number)), run.run_id, age_s, is_over, _EXIT_CODES.get(run.status))

    def _still_lives(self, record: dg.RunRecord, now: float) -> bool:
        """Whether a run that has ended for Dagster has a process that is known to live."""
        process = process_of(record.dagster_run.tags)
        # No pod outlives this, so the cluster need not be asked about each run of the last hour again and again
        if process is None or now - _ended_s(record) > grace_period_s(self._group.settings) + _LATE_JOB_S:
            return False
        gone = self._is_gone(process.as_process())
        # A cluster that does not answer will; of another machine nobody ever hears
        return gone is False or (gone is None and in_cluster(self._instance))

    def _is_gone(self, process: Process) -> bool | None:
        if process.run_id and in_cluster(self._instance):
            return pods_are_gone(api_of(self._instance.run_launcher), process.run_id)
        return is_gone(process)


def _ended_s(record: dg.RunRecord) -> float:
    return float(record.end_time or record.update_timestamp.timestamp())
