"""The rules of a case as kgs.yaml has them, in both editions."""

from collections.abc import Mapping
from typing import Any

from tests.combinations.case import OLD, Rule


def rules_of(rule: Rule, edition: int) -> list[Mapping[str, Any]]:
    found: dict[str, Any] = {"format": rule.format, "table": "t", "evolve": rule.evolve, "key_format": rule.key}
    column = rule.column
    parts: dict[str, tuple[object, Any]] = {
        "schema": (rule.named or rule.format == "json", _columns(rule, edition)),
        "unknown_fields": (rule.rescue, "rescue"),
        "key_schema": (rule.key == "json", {"k": "string"}),
        "partition_by": (rule.partitioned, [column]),
        "sort_by": (rule.sorted, ["_timestamp"]),
        "route": (rule.route, {"column": column, "tables": sides_of(column, edition)}),
        "topic_column": (rule.shared, "topic"),
        "newest_rows": (
            rule.newest,
            {
                "table": "newest",
                "history": "history",
                "key": newest_key(rule),
                "deletes": rule.newest,
                "order": rule.order,
                "deletion_vectors": rule.vectors,
                "changes": "debezium" if rule.changes else None,
            },
        ),
        "mask": (rule.mask, dict(rule.mask)),
    }
    found |= {name: part for name, (is_wanted, part) in parts.items() if is_wanted}
    return [{"topic": topic, **found} for topic in rule.topics]


def _columns(rule: Rule, edition: int) -> Mapping[str, str]:
    found = {"n": "long", "s": "string"}
    if rule.format == "json" and edition == OLD:
        found["p"] = "decimal(10,2)"
    elif rule.format == "json" and rule.evolve != "none":
        found["c"] = rule.added
    return found


def newest_key(rule: Rule) -> list[str]:
    """Columns of the derived table's key; offsets of two topics cannot be compared."""
    return [*(["topic"] if rule.shared and rule.order == "offset" else []), rule.by]


def sides_of(column: str, edition: int) -> Mapping[str, str]:
    """Values of the routing column -> their side tables."""
    one, two, three = ("k1", "k2", "k3") if column == "key" else ("a", "b", "c")
    return {one: "t_a", two: "t_b"} if edition == OLD else {one: "t_b", three: "t_a"}
