"""Records that end: by `keep` of a rule, or by `kgs erase` of a person.

1. A decision is noted first, by the places of its records (`ended_rows`). Then the rows at these places go, from the
   topic's own table, from side tables, and in the end dead letters. An audit takes an offset without a row for lost
   unless it is noted. Killed anywhere, the next run carries on: what is old is found again by its time, and what a
   person has erased by the note, since its condition may find nothing any more.
2. Only records below the position end: others are read again, and might come back.
3. A dead letter that was redriven goes with its row. The entry by which the row goes takes it out of the number and the
   sum of redriven letters, by which the audit tells them from faults.
4. `kgs redrive` passes over noted letters. Before anything goes, `REDRIVES` is raised in each table: so a redrive that
   has looked before the decision was noted is refused, and looks again.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kgs_core.config import TableSpec
from kgs_core.errors import UnsafeError
from kgs_core.lake.files.places import Places, both, joined, offsets_in, span_of
from kgs_core.lake.rule.positions import CLOSED, AppIds, offset_sum
from kgs_core.lake.rule.table_owner import REDRIVES, owners
from kgs_core.lake.topics.shared_table import refuse_other_groups, topics_by_id
from kgs_core.lake.topics.side_tables import side_tables_of
from kgs_core.ports import CommitOutcome, Lake, RowsRemoved
from kgs_core.system.failpoints import failpoint

KEEP, ERASE = "keep", "erase"


def row_tables(lake: Lake, group: str, specs: Sequence[TableSpec]) -> tuple[str, ...]:
    """The own table of some topics that share it, and their side tables.

    Raises:
        UnsafeError: another group has it now.
        PortError: a log cannot be read.
    """
    refuse_other_groups(lake, specs[0].table, group)
    sides = (name for spec in specs for name in side_tables_of(lake, spec, group))
    return (specs[0].table, *dict.fromkeys(name for name in sides if lake.pin(name) is not None))


def settled(places: Places, group: str, stored: Mapping[str, int]) -> Places:
    """Those of records that nobody reads again. `stored`: all versions of the own table."""
    topics, found = topics_by_id(stored, group), {}
    for key, offsets in places.items():
        if key.topic_id in topics:
            position = stored.get(AppIds(group, topics[key.topic_id], key.topic_id).position(key.partition), 0)
            if len(below := offsets[offsets < position]):
                found[key] = below
    return found


def end_records(
    lake: Lake,
    group: str,
    specs: Sequence[TableSpec],
    by: str,
    places: Places,
    still: Callable[[], None] = lambda: None,
) -> list[RowsRemoved]:
    """Note that records end, and carry it out; what went, by table.

    Args:
        specs: the topics of one table.
        by: `KEEP` or `ERASE`.
        places: settled ones; by `ERASE` all that were noted before end, too.
        still: called once they are noted, while their rows are still there.

    Raises:
        PortError: run it again.
    """
    tables = row_tables(lake, group, specs)
    if places:
        lake.note_ended(specs[0].table, by, places)
        failpoint("end-noted")
    ended = joined(places, lake.ended(specs[0].table).get(ERASE, {}) if by == ERASE else {})
    if not ended:
        return []
    for name in tables:
        _refuse_redrives_of_before(lake, name)
    failpoint("redrives-refused")
    still()
    letters_table = specs[0].dead_letters_table
    letters = lake.pin(letters_table)
    redriven = both(ended, joined(offsets_in(letters, span_of(ended))))
    done = [lake.remove_rows(name, ended, partial(_moved, specs[0].table, group, redriven)) for name in tables]
    if letters is not None:
        done.append(lake.remove_rows(letters_table, ended, lambda *_: {}))
    return done


def _refuse_redrives_of_before(lake: Lake, name: str) -> None:
    table, outcome = lake.open(name), CommitOutcome.REFUSED
    while outcome is CommitOutcome.REFUSED:
        stored = table.versions([REDRIVES])
        outcome = table.commit(stored, {REDRIVES: _raised(stored[REDRIVES])}, ())


def _raised(redrives: int | None) -> int:
    return (redrives or 0) + 1 + secrets.randbits(32)


def _moved(table: str, group: str, letters: Places, stored: Mapping[str, int], removed: Places) -> dict[str, int]:
    """Versions to write with the removal of rows: these are redriven letters no more."""
    if others := owners(stored).keys() - {group}:
        raise UnsafeError(f"table {table}: group {', '.join(others)} has it now (kgs adopt): run it with that group")
    topics, found = topics_by_id(stored, group), {REDRIVES: _raised(stored.get(REDRIVES))}
    for key, offsets in both(removed, letters).items():
        ids = AppIds(group, topics.get(key.topic_id, ""), key.topic_id)
        count = stored.get(ids.redriven(key.partition), 0)
        if count:
            found[ids.redriven(key.partition)] = max(count - len(offsets), 0)
            before = stored.get(ids.redriven_sum(key.partition), 0)
            found[ids.redriven_sum(key.partition)] = (before - offset_sum(offsets.tolist())) % CLOSED
    return found
