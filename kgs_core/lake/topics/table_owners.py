"""Which groups fill a table: at most one may, or every record would be in it twice."""

from kgs_core.errors import UnsafeError
from kgs_core.lake.rule.table_owner import owners
from kgs_core.ports import Lake


def refuse_other_groups(lake: Lake, table: str, group: str) -> dict[str, int]:
    """All versions in the log of a table that no other group fills."""
    stored = lake.all_versions(table)
    others = {name: topics for name, topics in owners(stored).items() if name != group}
    if others:
        name, topics = next(iter(others.items()))
        raise UnsafeError(
            f"table {table}: group {', '.join(others)} fills it (from {', '.join(topics)}): give group {group} another "
            f"lake.root or table, or, where {name} was renamed: kgs adopt --from-group {name}"
        )
    return stored
