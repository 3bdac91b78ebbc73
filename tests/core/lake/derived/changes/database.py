"""A database with one table, and what producers of changes write of what is done to it."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

UNAVAILABLE = "__debezium_unavailable_value"
DIALECTS = ("debezium", "flattened", "rewritten", "maxwell", "canal")
ACTS = ("put", "put", "touch", "touch", "delete", "rekey", "truncate", "snapshot", "repeat")
Key = tuple[int, str]

acts = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 3), st.integers(0, 3)), max_size=25)


@dataclass
class Database:
    """Rows `a`, `b` (the key), `name`, `doc` (not sent where it does not change), and records of their changes.

    Attributes:
        records: partition, key, value; an offset each.
        lsn: where its log is.
    """

    dialect: str
    partitions: int
    rows: dict[Key, dict[str, Any]] = field(default_factory=dict)
    records: list[tuple[int, Key | None, Any]] = field(default_factory=list)
    lsn: int = 0

    def act(self, what: str, n: int, value: int) -> None:
        self.lsn += 1
        getattr(self, f"_{what}")(n, value)

    def _put(self, n: int, value: int) -> None:
        self._set(_key(n), {"name": f"n{value}", "doc": None if value == 0 else f"d{value}-{self.lsn}"})

    def _touch(self, n: int, _: int) -> None:
        if (row := self.rows.get(_key(n))) is not None:
            self._set(_key(n), {"name": f"t{self.lsn}", "doc": row["doc"]})

    def _delete(self, n: int, _: int) -> None:
        if _key(n) in self.rows:
            self._emit("d", _key(n), self.rows.pop(_key(n)), None)

    def _truncate(self, *_: int) -> None:
        if self.dialect == "debezium" or (self.dialect == "canal" and self.partitions == 1):
            self.rows.clear()
            self._emit("t", None, None, None)

    def _snapshot(self, *_: int) -> None:
        for each, there in self.rows.items():
            self._emit("r", each, None, there)

    def _repeat(self, n: int, _: int) -> None:
        self.records += self.records[len(self.records) - n :] if n else []

    @property
    def _may_rekey(self) -> bool:
        return self.partitions == 1 or self.dialect not in ("maxwell", "canal")

    def _set(self, key: Key, values: dict[str, Any]) -> None:
        old = self.rows.get(key)
        self.rows[key] = {"a": key[0], "b": key[1], **values}
        self._emit("c" if old is None else "u", key, old, self.rows[key])

    def _rekey(self, n: int, value: int) -> None:
        key, other = _key(n), _key(value)
        if key not in self.rows or other in self.rows or not self._may_rekey:
            return
        old = self.rows.pop(key)
        self.rows[other] = {**old, "a": other[0], "b": other[1]}
        if self.dialect == "debezium":
            self.rows[other]["doc"] = None  # it is not sent
        if self.dialect in ("maxwell", "canal"):
            self._emit("u", other, old, self.rows[other])
        else:
            self._emit("d", key, old, None)
            sent = {"doc": UNAVAILABLE} if self.dialect == "debezium" else {}
            self._emit("c", other, None, {**self.rows[other], **sent})

    def _emit(self, op: str, key: Key | None, before: Any, after: Any) -> None:
        at = 0 if key is None else key[0] % self.partitions
        self.records += [(at, key, value) for value in getattr(self, f"_{self.dialect}")(op, before, after)]

    def _debezium(self, op: str, before: Any, after: Any) -> list[Any]:
        if op == "u" and before["doc"] == after["doc"] and after["doc"] is not None:
            after = {**after, "doc": UNAVAILABLE}
        if before is not None:  # by the replica identity of PostgreSQL's default
            before = {"a": before["a"], "b": before["b"], "name": "", "doc": None} if op == "d" else None
        source = {"lsn": self.lsn, "sequence": f'["{self.lsn - 1}","{self.lsn}"]', "ts_ms": self.lsn}
        event = {"op": op, "before": before, "after": after, "source": source}
        return [event, None] if op == "d" else [event]

    def _flattened(self, op: str, _: Any, after: Any) -> list[Any]:
        return [None if op == "d" else after]

    def _rewritten(self, op: str, before: Any, after: Any) -> list[Any]:
        if op == "d":
            return [{"a": before["a"], "b": before["b"], "__deleted": "true"}, None]
        return [{**after, "__deleted": "false"}]

    def _maxwell(self, op: str, before: Any, after: Any) -> list[Any]:
        if op == "d":
            return [{"type": "delete", "ts": self.lsn, "data": before}]
        kind = {"c": "insert", "u": "update", "r": "bootstrap-insert"}[op]
        return [{"type": kind, "ts": self.lsn, "data": after, "old": _changed(before, after) if op == "u" else None}]

    def _canal(self, op: str, before: Any, after: Any) -> list[Any]:
        if op == "t":
            return [{"type": "TRUNCATE", "es": self.lsn, "data": None, "old": None}]
        if op == "d":
            return [{"type": "DELETE", "es": self.lsn, "data": [_texts(before)], "old": None}]
        if op in ("c", "r"):
            return [{"type": "INSERT", "es": self.lsn, "data": [_texts(after)], "old": None}]
        old, last = [_texts(_changed(before, after))], self.records[-1:]
        if last and last[0][1] == (after["a"], after["b"]) and (last[0][2] or {}).get("type") == "UPDATE":
            self.records.pop()  # rows of one statement are one record
            return [{**last[0][2], "data": [*last[0][2]["data"], _texts(after)], "old": [*last[0][2]["old"], *old]}]
        return [{"type": "UPDATE", "es": self.lsn, "data": [_texts(after)], "old": old}]


def _key(n: int) -> Key:
    return n // 2, "xy"[n % 2]


def _changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in before.items() if value != after[name]}


def _texts(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value is None else str(value) for name, value in row.items()}
