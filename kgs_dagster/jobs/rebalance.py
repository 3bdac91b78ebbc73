"""The rebalance job: how a run is asked for, and how it is with those that were."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from kgs_dagster.assets.control_loop import control_loop_keys
from kgs_dagster.checks.control_loop import control_loop_check_keys
from kgs_dagster.launch import ATTEMPT, ENDED, GROUP, ROLE
from kgs_dagster.resources import RebalanceConfig, database, rebalance_key
from kgs_dagster.settings import GroupConfig

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

REBALANCE = "kgs/group-rebalance"
"""One run at a time for each value: a limit of the instance."""
TARGET = "kgs/target"
REBALANCE_ROLE = "rebalance"
LONGEST_BACK_OFF_S = 60.0
WRITES_WITHIN_S = 30.0
"""A run that has written no Target for so long will write none soon."""
_OPEN = [status for status in dg.DagsterRunStatus if status not in ENDED]
_REMEMBERED = 10


@dataclass(frozen=True, slots=True)
class Hold:
    """Why no further run is asked for now.

    Attributes:
        why: for people.
        target_stands: no other Target is to be expected soon.
    """

    why: str
    target_stands: bool


def rebalance_job(group: GroupConfig) -> "UnresolvedAssetJobDefinition":
    """The four steps of one change. In one process: its controller lives through all of them, and starts once."""
    checks = dg.AssetSelection.checks(*control_loop_check_keys(group))
    return dg.define_asset_job(
        f"rebalance_job{group.suffix}",
        selection=dg.AssetSelection.assets(*control_loop_keys(group)) - checks,
        description=f"Packs the partitions of group {group.name} anew if that is due, and hands them over. The sensor "
        "asks for it; by hand, it takes the newest measurement. With dry_run it only shows the plan.",
        executor_def=dg.in_process_executor,
        tags={GROUP: group.name, ROLE: REBALANCE_ROLE, REBALANCE: group.name},
    )


def rebalance_run_request(group: GroupConfig, config: RebalanceConfig, target_offset: int | None) -> dg.RunRequest:
    """One rebalance run: Dagster makes it once, however often this decision is asked for.

    Args:
        group: whose.
        config: what the run is referred to.
        target_offset: of the Target that stood when it was asked for.
    """
    seen = config.measurement_offset if config.packs else f"report-{config.report_offset}"
    return dg.RunRequest(
        run_key=f"{group.name}/{_text(target_offset)}/{seen}",
        job_name=f"rebalance_job{group.suffix}",
        run_config={"resources": {rebalance_key(group): {"config": config.model_dump()}}},
        tags={
            GROUP: group.name,
            ROLE: REBALANCE_ROLE,
            REBALANCE: group.name,
            TARGET: _text(target_offset),
            ATTEMPT: str(config.attempt),
        },
    )


class RebalanceRuns:
    """The rebalance runs of one group in a Dagster instance."""

    def __init__(
        self, instance: dg.DagsterInstance, group: GroupConfig, clock: Callable[[], float] = time.time
    ) -> None:
        """Asks nothing yet.

        Args:
            instance: whose runs.
            group: which of them.
            clock: seconds since 1970.
        """
        self._instance = instance
        self._tags = {GROUP: group.name, REBALANCE: group.name}
        self._first_wait_s = group.settings.membership.start_backoff_s
        self._clock = clock

    def hold(self, target_offset: int | None) -> Hold | None:
        """Why no further run is to be asked for now; None: one may be.

        Args:
            target_offset: of the newest Target.

        Raises:
            TransientError: Dagster's database does not answer.
        """
        found = self._newest(_OPEN, 1)
        if found:
            run = found[0].dagster_run
            age_s = self._clock() - found[0].create_timestamp.timestamp()
            has_written = run.tags.get(TARGET) != _text(target_offset)
            return Hold(
                f"rebalance run {run.run_id[:8]} is in progress since {age_s:.0f} s",
                has_written or age_s > WRITES_WITHIN_S,
            )
        return self._back_off()

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
        return Hold(f"{which} failed, the next one in {left_s:.0f} s", target_stands=True)

    def _failed(self) -> list[dg.RunRecord]:
        """The last runs, as far as they failed without one between that did not; the newest first."""
        records = self._newest(list(ENDED), _REMEMBERED)
        ends = (i for i, each in enumerate(records) if each.dagster_run.status is not dg.DagsterRunStatus.FAILURE)
        return records[: next(ends, len(records))]

    def _newest(self, statuses: list[dg.DagsterRunStatus], most: int) -> list[dg.RunRecord]:
        with database("runs cannot be read"):
            return list(self._instance.get_run_records(dg.RunsFilter(tags=self._tags, statuses=statuses), limit=most))


def _text(offset: int | None) -> str:
    return "none" if offset is None else str(offset)
