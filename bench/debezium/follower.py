"""A database, its changes in Kafka, and a real group whose tables follow it: what a user sets up, on one machine."""

import json
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

import psutil
import yaml
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from bench.debezium.connect import PREFIX, Debezium
from bench.debezium.postgres import Postgres
from bench.debezium.workload import TABLES, Transactions
from kgs_core.config.file import load_settings
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.system.processes import find_runs, leader_of
from kgs_core.system.subprocesses import ChildProcess

_KGS = str(Path(sys.executable).with_name("kgs"))
_SOURCE = "struct<lsn: long, sequence: string, snapshot: string, ts_ms: long>"
_RULES: dict[str, dict[str, Any]] = {
    "customers": {
        "schema": {
            "after": "struct<id: long, name: string, balance: binary, seen: string, born: int, doc: string, "
            "big: string, added: int>",
            "before": "struct<id: long>",
        },
        "key_schema": {"id": "long"},
        "newest_rows": {"types": {"balance": "decimal(12,2)", "seen": "timestamp", "born": "date"}},
    },
    "orders": {  # in the other order, and with the other kind of deletes
        "schema": {
            "after": "struct<region: string, number: int, amount: binary, note: string>",
            "before": "struct<region: string, number: int>",
        },
        "key_schema": {"region": "string", "number": "int"},
        "newest_rows": {"types": {"amount": "decimal(10,2)"}, "order": "source", "deletes": "column"},
    },
}


class Follower:
    """All of it; a context manager that ends every process. What is killed is started again by the one who does it.

    Attributes:
        workload: what writes into the database; it rests at first.
    """

    def __init__(self, folder: Path, *, seed: int, rows: int, per_s: float) -> None:
        self._folder = folder
        self._seed = seed
        self._size = rows, per_s
        self._held = ExitStack()
        self.workload: Transactions

    def __enter__(self) -> Self:
        with ExitStack() as held:
            enter = held.enter_context
            self.postgres = enter(Postgres(wal_level="logical"))
            rows, speed = self._size
            self.workload = Transactions(self.postgres, seed=self._seed, rows=rows, per_s=speed)
            self.kafka = enter(EmbeddedKafka.start(self._folder / "kafka", log=print))
            self.debezium = enter(
                Debezium(self._folder / "debezium", self.kafka.bootstrap_servers, self.postgres, print)
            )
            self.debezium.start()
            config = self._folder / "kgs.yaml"
            config.write_text(yaml.safe_dump(self._tree()))
            self.settings = load_settings(config, {})
            control = [_KGS, "control", "--config", str(config), "--log-dir", str(self._folder / "logs")]
            self.control = enter(ChildProcess("control", control, self._folder / "control.log"))
            held.callback(self._end_consumers)
            self.control.start()
            enter(self.workload)
            self._held = held.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def kill_consumer(self) -> None:
        """SIGKILL to each; the controller starts them again."""
        for members in self._runs():
            if (leader := leader_of(members)) is not None:
                leader.kill()

    def restart(self, name: Literal["control", "debezium", "postgres"]) -> None:
        """SIGKILL, and a start."""
        victim: ChildProcess | Debezium | Postgres = getattr(self, name)
        victim.kill()
        victim.start()

    def differences(self) -> list[str]:
        """How the tables of newest rows differ from the database's; empty: they are equal."""
        found = []
        for table, columns in TABLES.items():
            names = columns.split(", ")
            wanted = {_comparable(row) for row in self.workload.rows(table)}
            there = [_comparable(tuple(row[name] for name in names)) for row in self._newest(table, names)]
            if len(there) > len({*there}):
                found.append(f"{table}: {len(there) - len({*there})} rows twice")
            for what, rows in (("lacks", wanted - {*there}), ("has", {*there} - wanted)):
                if rows:
                    found.append(f"{table}: {what} {len(rows)} rows, as {min(rows, key=repr)}"[:400])
        return found

    def newest_change(self) -> datetime | None:
        """When the youngest of the changes that the table of customers shows was made."""
        return max(
            (row["seen"] for row in self._newest("customers", ["seen"]) if row["seen"] is not None), default=None
        )

    def _newest(self, table: str, columns: list[str]) -> list[dict[str, Any]]:
        try:
            there = DeltaTable(str(Path(self.settings.lake.root) / "gold" / table))
            marks = [field.name for field in there.schema().fields if field.name == "_deleted"]
            rows = there.to_pyarrow_table(columns=[*columns, *marks]).to_pylist()
        except (TableNotFoundError, FileNotFoundError, DeltaError):  # not there yet, or cleaned up while it was read
            return []
        return [row for row in rows if not row.get("_deleted")]

    def _tree(self) -> dict[str, Any]:
        return {
            "group": f"follower-{self._folder.name}"[:60],
            "kafka": {"bootstrap_servers": self.kafka.bootstrap_servers},
            "lake": {"root": str(self._folder / "lake")},
            "consumer": {"wait_time_s": 0.2},
            "monitor": {"window_s": 6.0},
            "membership": {"suspect_after_s": 6.0},
            "packing": {
                "packing_capacity_bytes_per_s": 10e6,
                "consumer_capacity_bytes_per_s": 12e6,
                "spare_consumers": 0,
                "sentinel_timeout_s": 5.0,
            },
            "topics": [_rule(table) for table in TABLES],
        }

    def _runs(self) -> list[list[psutil.Process]]:
        return [*find_runs(f"{self.settings.group}@").values()]

    def _end_consumers(self) -> None:
        self.control.kill()
        for members in self._runs():
            for member in members:
                member.kill()


def _rule(table: str) -> dict[str, Any]:
    rule = _RULES[table]
    return {
        "topic": f"{PREFIX}.public.{table}",
        "table": f"bronze/{table}",
        "format": "json",
        "schema": {**rule["schema"], "op": "string", "source": _SOURCE, "ts_ms": "long"},
        "key_format": "json",
        "key_schema": rule["key_schema"],
        "newest_rows": {"table": f"gold/{table}", "changes": "debezium", **rule["newest_rows"]},
    }


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Times in UTC, and what JSON says instead of how it is written."""
    return tuple(_value(each) for each in row)


def _value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, str) and value[:1] == "{":
        value = json.loads(value)
    return json.dumps(value, sort_keys=True) if isinstance(value, dict) else value
