"""Records of a group's runs for one who looks every second: what has ended is asked of the database once."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import dagster as dg

from kgs_dagster.run_process import ENDED, NOT_ENDED

WHOLE_LOOK_EVERY_S = 60.0
"""Then everything is asked anew: it tells of runs that were deleted."""
OVERLAP_S = 60.0
"""How far the clocks of those who write to the database may lie behind, of runs that nobody saw open."""


class RunRecords:
    """Runs that have not ended, and those that ended of late.

    A look asks for all that have not ended, and for those that ended since the last look. One that was open then and
    is not now is asked for by its id, so that no clock decides whether its end is noticed. A look that fails leaves
    everything as it was: the next one asks from there.

    Attributes:
        open: ids of those that had not ended at the last look, `looked_s`.
    """

    def __init__(self, instance: dg.DagsterInstance, tags: Mapping[str, str]) -> None:
        self._instance = instance
        self._tags = dict(tags)
        self.open: frozenset[str] = frozenset()
        self._ended: Mapping[str, dg.RunRecord] = {}
        self.looked_s = self._whole_s = float("-inf")

    def look(self, now: float, memory_s: float) -> list[dg.RunRecord]:
        """All as of now, oldest first; an ended run is remembered for `memory_s`."""
        forgotten_s = now - memory_s
        is_whole = now - self._whole_s >= WHOLE_LOOK_EVERY_S
        since_s = forgotten_s if is_whole else max(forgotten_s, self.looked_s - OVERLAP_S)
        open_ = {record.dagster_run.run_id: record for record in self._ask(NOT_ENDED)}
        ended = {record.dagster_run.run_id: record for record in self._ask(ENDED, since_s)}
        unheard = self.open - open_.keys() - ended.keys()
        if unheard:
            again = self._instance.get_run_records(dg.RunsFilter(run_ids=sorted(unheard)))
            ended |= {record.dagster_run.run_id: record for record in again}
        known = {} if is_whole else self._ended
        everything = {**known, **open_, **ended}
        is_over = {id_: record.dagster_run.status in ENDED for id_, record in everything.items()}
        self.open = frozenset(id_ for id_, over in is_over.items() if not over)
        self._ended = {
            id_: record
            for id_, record in everything.items()
            if is_over[id_] and record.update_timestamp.timestamp() > forgotten_s
        }
        self.looked_s, self._whole_s = now, now if is_whole else self._whole_s
        found = [*self._ended.values(), *(everything[id_] for id_ in self.open)]
        return sorted(found, key=lambda record: record.storage_id)

    def _ask(self, statuses: Sequence[dg.DagsterRunStatus], since_s: float | None = None) -> Sequence[dg.RunRecord]:
        since = None if since_s is None else datetime.fromtimestamp(since_s, UTC)
        return self._instance.get_run_records(
            dg.RunsFilter(tags=self._tags, statuses=list(statuses), updated_after=since)
        )
