"""The rebalance job: how a run is asked for, and how it is with those that were."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import dagster as dg

from kgs_core.group.protocol import Received, Target
from kgs_core.reporting.group_alerts import GroupAlert
from kgs_core.runtime.rebalance_run import longest_run_s
from kgs_dagster.assets.control_loop import ASSIGNMENT, control_loop_keys
from kgs_dagster.checks.group_alerts import group_alert_key
from kgs_dagster.jobs.shape import AssetJob, asset_job
from kgs_dagster.launch import ATTEMPT, GROUP, REASON, ROLE
from kgs_dagster.resources import UNFINISHED, RebalanceConfig, rebalance_key
from kgs_dagster.run_process import ENDED, NOT_ENDED, database, end_hung_run
from kgs_dagster.settings import GroupConfig

REBALANCE = "kgs/group-rebalance"
"""One run at a time for each value: a limit of the instance."""
TARGET = ".dagster/kgs-target"
REBALANCE_ROLE = "rebalance"
LONGEST_BACK_OFF_S = 60.0
MONITORED_AFTER_S = 60.0
"""Later than the sensor, whose words say more: Dagster's own limit is for where no sensor goes."""
WRITES_WITHIN_S = 30.0
"""A run that has written no Target for so long will write none soon."""
RECORDED_WITHIN_S = 600.0
_REMEMBERED = 10
_WRITTEN = "written-"
_NOT_BEGUN = frozenset({dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING})


@dataclass(frozen=True, slots=True)
class Hold:
    """Reason why no further run is asked for now.

    Attributes:
        target_stands: no other Target is to be expected soon.
        is_writing: a run that decides by itself has begun, and alone may write.
    """

    why: str
    target_stands: bool
    is_writing: bool


def rebalance_job(group: GroupConfig) -> AssetJob:
    """The four steps of one change. In one process: its controller lives through all of them, and starts once."""
    alerts = dg.AssetSelection.checks(*(group_alert_key(group, alert) for alert in GroupAlert))
    return asset_job(
        group,
        "rebalance_job",
        REBALANCE_ROLE,
        dg.AssetSelection.assets(*control_loop_keys(group)) - alerts,
        f"Packs the partitions of group {group.name} again if that is due, and hands them over. The sensor "
        "asks for it; by hand, it takes the newest measurement and carries out what the packer wants now.",
        longest_run_s(group.settings.membership) + MONITORED_AFTER_S,
        tags={REBALANCE: group.name},
    )


def rebalance_run_request(
    group: GroupConfig, config: RebalanceConfig, target: Received[Target] | None
) -> dg.RunRequest:
    """One rebalance run: Dagster makes it once, however often this decision is asked for, or the record of `target`."""
    if config.written is not None and target is not None:
        before, key = _record_of(target), _record_of(target)
    else:
        before = _text(target.offset if target else None)
        key = f"{before}/{config.measurement_offset if config.packs else f'report-{config.report_offset}'}"
    return dg.RunRequest(
        run_key=f"{group.name}/{key}",
        job_name=f"rebalance_job{group.suffix}",
        run_config={"resources": {rebalance_key(group): {"config": config.model_dump()}}},
        tags={
            GROUP: group.name,
            ROLE: REBALANCE_ROLE,
            REBALANCE: group.name,
            TARGET: before,
            ATTEMPT: str(config.attempt),
            REASON: config.reason,
        },
    )


class RebalanceRuns:
    """The rebalance runs of one group in a Dagster instance."""

    def __init__(
        self, instance: dg.DagsterInstance, group: GroupConfig, clock: Callable[[], float] = time.time
    ) -> None:
        self._instance = instance
        self._assignment = group.key(ASSIGNMENT)
        self._tags = {GROUP: group.name, REBALANCE: group.name}
        self._longest_s = longest_run_s(group.settings.membership)
        self._first_wait_s = group.settings.membership.start_backoff_s
        self._clock = clock

    def hold(self, target_offset: int | None) -> Hold | None:
        """Why no further run is to be asked for now; None: one may be.

        A run that hangs holds up nobody: it is marked as failed, and the next one fences it.

        Raises:
            TransientError: Dagster's database does not answer.
        """
        found = [record for record in self._newest(NOT_ENDED) if not self._is_given_up(record)]
        if found:
            run = found[0].dagster_run
            age_s = self._clock() - found[0].create_timestamp.timestamp()
            has_written = run.tags.get(TARGET) != _text(target_offset)
            return Hold(
                f"rebalance run {run.run_id[:8]} is in progress since {age_s:.0f} s",
                has_written or age_s > WRITES_WITHIN_S,
                is_writing=any(_may_write(record.dagster_run) for record in found),
            )
        return self._back_off()

    def is_recorded(self, target: Received[Target], now_s: float) -> bool:
        """Whether a run records this Target, has done so, or it is too old to be asked for.

        A record is asked for once: a run that failed is there to be seen.

        Args:
            now_s: seconds since 1970.

        Raises:
            TransientError: Dagster's database does not answer.
        """
        if now_s - target.timestamp_ms / 1000 > RECORDED_WITHIN_S:
            return True
        with database("rebalance runs cannot be read"):
            if self._instance.get_runs_count(dg.RunsFilter(tags={**self._tags, TARGET: _record_of(target)})):
                return True
            found = self._instance.fetch_materializations(self._assignment, limit=_REMEMBERED).records
        said = [each.asset_materialization.metadata for each in found if each.asset_materialization]
        made = [each["target_offset"].value for each in said if "is_new" in each and each["is_new"].value]
        return target.offset in made  # a run that finds a Target standing says its offset, too, and records no change

    def _is_given_up(self, record: dg.RunRecord) -> bool:
        """Whether a run that had not ended has hung and is over now. One in the queue waits, and does not hang."""
        run = record.dagster_run
        if run.status in _NOT_BEGUN - {dg.DagsterRunStatus.STARTING}:
            return False
        began_s = record.start_time or record.update_timestamp.timestamp()
        age_s = self._clock() - began_s
        if age_s <= self._longest_s:
            return False
        with database(f"run {run.run_id} cannot be ended"):
            end_hung_run(
                self._instance,
                run,
                f"hung: not over after {age_s:.0f} s, and a rebalance takes {self._longest_s:.0f} s at most "
                "(2.5 x start_timeout_s and two minutes): given up, the next run fences and continues it",
            )
        return True

    def next_attempt(self) -> int:
        """1, and one more for each of the last runs that failed.

        Raises:
            TransientError: Dagster's database does not answer.
        """
        return 1 + len(self._failed())

    def _back_off(self) -> Hold | None:
        failed = self._failed()
        if not failed:
            return None
        ended = failed[0].end_time or failed[0].update_timestamp.timestamp()
        wait_s = min(self._first_wait_s * 2.0 ** (len(failed) - 1), LONGEST_BACK_OFF_S)
        left_s = ended + wait_s - self._clock()
        if left_s <= 0:
            return None
        which = "the last rebalance run" if len(failed) == 1 else f"the last {len(failed)} rebalance runs"
        return Hold(f"{which} failed, the next one in {left_s:.0f} s", target_stands=True, is_writing=False)

    def _failed(self) -> list[dg.RunRecord]:
        """The last runs, as far as they failed without one between that did not; the newest first."""
        records = self._newest(ENDED)
        ends = (i for i, each in enumerate(records) if not _has_failed(each.dagster_run))
        return records[: next(ends, len(records))]

    def _newest(self, statuses: Sequence[dg.DagsterRunStatus]) -> list[dg.RunRecord]:
        wanted = dg.RunsFilter(tags=self._tags, statuses=list(statuses))
        with database("runs cannot be read"):
            return list(self._instance.get_run_records(wanted, limit=_REMEMBERED))


def _may_write(run: dg.DagsterRun) -> bool:
    """Not so the record of a change: who began that goes on with it, and may fence the run."""
    return run.status not in _NOT_BEGUN and not run.tags.get(TARGET, "").startswith(_WRITTEN)


def _has_failed(run: dg.DagsterRun) -> bool:
    return run.status is dg.DagsterRunStatus.FAILURE and UNFINISHED not in run.tags


def _record_of(target: Received[Target]) -> str:
    """Offsets begin anew where topics are made anew."""
    return f"{_WRITTEN}{target.offset}-{target.timestamp_ms}"


def _text(offset: int | None) -> str:
    return "none" if offset is None else str(offset)
