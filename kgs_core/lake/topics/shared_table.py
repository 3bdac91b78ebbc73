"""A table filled by several topics, never by two groups: its rows' topics, and whether one more topic fits."""

from collections.abc import Collection

import pyarrow as pa

from kgs_core.config import TableSpec
from kgs_core.errors import UnsafeError
from kgs_core.lake.files.columns import as_wide_as_there, misfits, widened
from kgs_core.lake.rule.positions import AppIds, parse_app_id
from kgs_core.lake.rule.table_owner import owners
from kgs_core.model import TopicId
from kgs_core.ports import Lake

MOST_NAMED = 5


def topics_by_id(apps: Collection[str], group: str) -> dict[TopicId, str]:
    """Topic of each topic id with entries of a group in a table's log."""
    found = (parse_app_id(app) for app in apps)
    return {app.topic_id: app.topic for app in found if app is not None and app.group == group}


def refuse_other_groups(lake: Lake, table: str, group: str) -> dict[str, int]:
    """All versions in the log of a table that no other group fills.

    Raises:
        UnsafeError: names the groups, and the way out.
        PortError: the log cannot be read.
    """
    stored = lake.all_versions(table)
    others = {name: topics for name, topics in owners(stored).items() if name != group}
    if others:
        name, topics = next(iter(others.items()))
        raise UnsafeError(
            f"table {table}: group {', '.join(others)} fills it (from {', '.join(topics)}): give group {group} another "
            f"lake.root or table, or, where {name} was renamed: kgs adopt --from-group {name}"
        )
    return stored


def refuse_unlike_columns(lake: Lake, spec: TableSpec, ids: AppIds, schema: pa.Schema, *, is_made: bool) -> None:
    """Refuse a topic that is about to begin in a table of other topics, if its columns differ from the table's.

    Called twice: before anything of the topic is written, and once the table exists. If two topics begin at once,
    neither sees the other, but both see the table that one of them made. Later a topic's values are judged one by one,
    as those of any topic whose schema has changed.

    Args:
        schema: columns that the topic's rows would have.
        is_made: the table is there, perhaps made just now for another topic that has not begun either.

    Raises:
        UnsafeError: it names the columns, and the way out.
        PortError: the log cannot be read.
    """
    stored = lake.all_versions(spec.table)
    known = owners(stored).get(ids.group, ())
    others = [topic for topic in known if topic != ids.topic]
    is_begun = any(app.startswith(ids.position(0)[:-1]) for app in stored)
    if is_begun or not (others or (is_made and not known)):
        return
    there = pa.schema(lake.open(spec.table).schema)
    evolve = spec.rule.evolve
    wanted = as_wide_as_there(widened(schema), there) if evolve == "widen" else schema
    unlike = [what for what in misfits(wanted, there) if evolve == "none" or not what.endswith(" is missing")]
    if unlike:
        more = f" and {len(unlike) - MOST_NAMED} more" if len(unlike) > MOST_NAMED else ""
        named = ", ".join(others[:MOST_NAMED]) or "another topic"
        raise UnsafeError(
            f"topic {ids.topic}: table {spec.table} is filled from {named}, and the columns do not agree: "
            f"{'; '.join(unlike[:MOST_NAMED])}{more}: give the topic another table, or the same columns"
        )
