"""Random transactions over two tables of a PostgreSQL, as applications write them; the same for the same seed."""
# ruff: noqa: S608 - no statement has a word of anybody else

import threading
import time
from contextlib import suppress
from random import Random
from typing import Any, Self

import psycopg2

from bench.debezium.connect import SIGNALS
from bench.debezium.postgres import Postgres

TABLES = {
    "customers": "id, name, balance, seen, born, doc, big, added",
    "orders": "region, number, amount, note",
}
"""Table -> its columns."""
# The identity of the second is all of a row, so that events of deletes and of changed keys have all values.
_SCHEMA = f"""
create table {SIGNALS} (id varchar(60) primary key, type varchar(32) not null, data varchar(2048));
create table customers (id bigint primary key, name text, balance numeric(12, 2), seen timestamptz, born date,
    doc jsonb, big text);
create table orders (region text, number int, amount numeric(10, 2), note text, primary key (region, number));
alter table orders replica identity full;
alter table customers alter column big set storage external
"""
_SNAPSHOT = """insert into {} values (gen_random_uuid()::text, 'execute-snapshot',
    '{{"data-collections": ["public.customers", "public.orders"], "type": "incremental"}}')"""
_BIG = "repeat(md5(random()::text), 100)"
"""Stored out of line: not sent with a change of another column."""
_REGIONS = ("eu", "us", "asia")
_LONG = 8
"""Transactions that others overtake while one of these is open."""
_REST_S = 0.2


class Transactions:
    """A thread that writes; a context manager that ends it. Transactions that fail, as the server dies, are left.

    Attributes:
        changes: rows changed by transactions that are committed.
    """

    def __init__(self, database: Postgres, *, seed: int, rows: int, per_s: float) -> None:
        """Makes the tables with `rows` customers, and half as many orders."""
        self.changes = 0
        self._database = database
        self._random = Random(seed)  # noqa: S311 - no secret
        self._rows = rows
        self._pause_s, self._due_s = 1 / per_s, 0.0
        self._ended, self._rests = threading.Event(), threading.Event()
        self._idle = threading.Event()
        self._rests.set()
        self._thread = threading.Thread(target=self._run, name="workload", daemon=True)
        self._execute(
            _SCHEMA,
            f"insert into customers select n, 'c' || n, n % 1000, now(), '2000-01-01', '{{}}', "
            f"case when n % 10 = 0 then {_BIG} end from generate_series(1, {rows}) n",
            f"insert into orders select 'eu', n, n, null from generate_series(1, {rows // 2}) n",
        )

    def write(self) -> None:
        """Go on."""
        self._idle.clear()
        self._rests.clear()

    def rest(self) -> None:
        """Returns when all transactions have ended."""
        self._rests.set()
        self._idle.wait()

    def add_column(self) -> None:
        """A column with a default, which PostgreSQL tells nobody the rows of: so they are told anew."""
        self._execute("alter table customers add column if not exists added int default 5")
        self.snapshot()

    def snapshot(self) -> None:
        """Have all rows sent anew, between changes."""
        self._execute(_SNAPSHOT.format(SIGNALS))

    def truncate(self) -> None:
        """Empty the orders."""
        self._execute("truncate orders")

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """All rows; columns that are not there yet are null."""
        with psycopg2.connect(self._database.url) as connection, connection.cursor() as cursor:
            cursor.execute(f"select * from {table} limit 0")
            there = {column.name for column in cursor.description or ()}
            names = [name if name in there else "null" for name in TABLES[table].split(", ")]
            cursor.execute(f"select {', '.join(names)} from {table}")
            found: list[tuple[Any, ...]] = cursor.fetchall()
        connection.close()
        return found

    def count(self) -> int:
        """Rows of both tables."""
        return sum(len(self.rows(table)) for table in TABLES)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _execute(self, *statements: str) -> None:
        """In one transaction, which gives way: who waits for a lock keeps those behind it from ending theirs."""
        while True:
            try:
                return self._try("set local lock_timeout = '100ms'", *statements)
            except psycopg2.errors.LockNotAvailable:
                self._ended.wait(_REST_S)

    def _try(self, *statements: str) -> None:
        with psycopg2.connect(self._database.url) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        connection.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            url = self._database.url
            # Where the server was killed it is asked again
            with suppress(psycopg2.Error), _Session(url) as short, _Session(url) as long:
                self._write(short, long)
            self._ended.wait(_REST_S)

    def _write(self, short: "_Session", long: "_Session") -> None:
        number = 0
        while not self._ended.is_set():
            if self._rests.is_set():
                self._end(long)
                self._idle.set()
                self._ended.wait(_REST_S)
                continue
            number += 1
            # Rows of their own: nobody waits for the other's
            self._change(long, range(self._rows, self._rows + 50))
            for _ in range(self._random.randint(1, 6)):
                self._change(short, range(1, self._rows))
            self._end(short)
            if number % _LONG == 0:
                self._end(long)

    def _change(self, session: "_Session", ids: range) -> None:
        draw = self._random
        one, other, amount = draw.choice(ids), draw.choice(ids), draw.randint(-99999, 99999) / 100
        here, there, note = draw.choice(_REGIONS), draw.choice(_REGIONS), f"n{draw.random()}"
        big, of_order = draw.choice(("null", _BIG, "''")), f"where (region, number) = ('{here}', {one})"
        kind = draw.choices(range(9), (4, 12, 2, 1, 2, 3, 8, 2, 2))[0]
        session.execute(
            (
                f"insert into customers (id, name, balance, seen, born, doc, big) values ({one}, '{note}', {amount}, "
                f"clock_timestamp(), date '1970-01-01' + {int(amount)}, '{{\"a\": [{one}, null, \"ü\"]}}', {big}) "
                "on conflict do nothing",
                f"update customers set balance = balance + 1, seen = clock_timestamp() where id = {one}",
                f"update customers set big = {_BIG}, doc = null where id = {one}",
                # Of rows without a big value: it would not be sent with the new key either, where identity is the key
                f"update customers set id = {other} where id = {one} and coalesce(big, '') = '' "
                f"and not exists (select 1 from customers where id = {other})",
                f"delete from customers where id = {one}",
                f"insert into orders values ('{here}', {one}, {amount}, null) on conflict do nothing",
                f"update orders set amount = amount + 1, note = '{note}' {of_order}",
                f"update orders set region = '{there}', number = {other} {of_order} "
                f"and not exists (select 1 from orders where (region, number) = ('{there}', {other}))",
                f"delete from orders {of_order}",
            )[kind]
        )
        self._due_s = max(self._due_s + self._pause_s, time.monotonic() - _REST_S)
        self._ended.wait(max(0.0, self._due_s - time.monotonic()))

    def _end(self, session: "_Session") -> None:
        """Commit, or one time in ten not."""
        if self._random.random() < 0.1:  # noqa: PLR2004
            session.connection.rollback()
        else:
            session.connection.commit()
            self.changes += session.changes
        session.changes = 0


class _Session:
    """A connection with an open transaction; a context manager that closes it."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg2.connect(url)
        self.changes = 0

    def execute(self, statement: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            self.changes += cursor.rowcount

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
