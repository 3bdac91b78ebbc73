"""A bill for people: what was used, what moves have cost, and what other ways would have taken."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from kgs_core.cli.terminal import output_console, plain_table, print_table
from kgs_core.group.view.plain_text import UNKNOWN
from kgs_core.simulation.bill_charts import day_hours

_WIDTH_IN_FILE = 160
Values = Mapping[str, Any]


def print_bill(bill: Values) -> None:
    """Print the values of a bill to standard output."""
    console = output_console(_WIDTH_IN_FILE)
    console.print(f"{bill['group']}: {bill['since']} to {bill['until']}", style="bold")
    if bill["used_consumer_hours"] is not None:
        console.print(f"used: {_number(bill['used_consumer_hours'], 2)} consumer hours{_money(bill, 'used_cost')}")
        for name, used in bill.get("used_by_class", {}).items():
            hours = f"{_number(used['consumer_hours'], 2)} hours"
            console.print(
                f"  {name or 'without a class'}: {hours}{_money({**used, 'currency': bill['currency']}, 'cost')}"
            )
    elif bill["silent_consumer_hours"] is not None:
        console.print("used: not known")
    if bill["moves"] is not None:
        console.print(_moves(bill["moves"]))
    if bill["compared"]:
        p99 = f"{bill['p99_s']:.2f} s"
        capacity = bill["capacity_bytes_per_s"] / 1e6
        console.print(
            f"\ncompared over {bill['compared_s'] / 3600:,.2f} h by C = {capacity:.3g} MB/s "
            f"at a p99 latency of at most {p99}:"
        )
        _print_costs(bill)
    for note in bill["notes"]:
        console.print(f"! {note}", style="yellow", markup=False)


def print_month(days: Mapping[int, Values | None], month: str) -> None:
    """Print a row for each day; `?` where something is not known."""
    console = output_console(_WIDTH_IN_FILE)
    names = list(dict.fromkeys(name for bill in days.values() for name in day_hours(bill)))
    table = plain_table("day", *names, "cost", "moved", "iterations", "known", left=("day",))
    for day, bill in days.items():
        hours = day_hours(bill)
        moves = (bill or {}).get("moves") or {}
        known = f"{bill['known_s'] / 864:.0f} %" if bill is not None else "0 %"
        cells = [_number(hours.get(name), 1) for name in names]
        cost = _number((bill or {}).get("used_cost"), 2)
        table.add_row(
            f"{month}-{day:02d}",
            *cells,
            cost,
            _number(moves.get("moved"), 0),
            _number(moves.get("iterations"), 1),
            known,
        )
    print_table(console, table)
    console.print("consumer hours; ?: not known", style="dim")


def _print_costs(bill: Values) -> None:
    console = output_console(_WIDTH_IN_FILE)
    priced = bill["price_per_consumer_hour"] is not None
    cost = ("cost" + (f" {bill['currency']}" if bill["currency"] else ""),) if priced else ()
    table = plain_table("", "hours", *cost, "consumers", "p99 s", "moved", "Rscore", "late MB", "how", left=("", "how"))
    for row in bill["compared"]:
        late = row["late_bytes"]
        money = (_number(row["cost"], 2),) if priced else ()
        table.add_row(
            row["name"],
            _number(row["consumer_hours"], 2),
            *money,
            _blank(row["mean_consumers"], 2),
            _blank(row["p99_s"], 2) + ("" if row["is_met"] else " !"),
            _blank(row["moved"], 0),
            _blank(row["rscore"], 2),
            _blank(late / 1e6 if late is not None else None, 1),
            row["setting"],
        )
    print_table(console, table)


def _moves(moves: Values) -> str:
    known = moves["moved"] + moves["restarted"] - moves["speed_unknown"]
    head = (
        f"moves: {moves['moved']:,}, and {moves['restarted']:,} partitions whose consumer restarted; "
        f"{moves['unread_s']:,.1f} s without a reader in total"
    )
    if known == 0 and moves["speed_unknown"]:
        return f"{head}; what that cost is not known"
    return (
        f"{head}; Rscore {moves['rscore']:,.2f}, {moves['unread_bytes'] / 1e6:,.2f} MB unread, "
        f"{moves['unread_byte_s'] / 1e6:,.2f} MB x s, {moves['iterations']:,.2f} consumer iterations to read them"
    )


def _money(bill: Values, key: str) -> str:
    if bill[key] is None:
        return ""
    return f", {_number(bill[key], 2)}{' ' + bill['currency'] if bill['currency'] else ''}"


def _number(value: float | None, digits: int, unknown: str = UNKNOWN) -> str:
    return unknown if value is None else f"{value:,.{digits}f}"


_blank = partial(_number, unknown="")
