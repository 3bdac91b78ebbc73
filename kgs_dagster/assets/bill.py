"""The bill of each day: what `kgs bill` says, recorded for good, for the group's topics forget."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

import dagster as dg

from kgs_core.config import Settings
from kgs_core.errors import TransientError
from kgs_dagster.assets.lake import lake_layout
from kgs_dagster.metadata import bullets, table
from kgs_dagster.run_process import claim_run, failures_named
from kgs_dagster.settings import GroupConfig

if TYPE_CHECKING:
    from kgs_core.simulation.bill import Bill

BILL = "bill"
DAYS = dg.DailyPartitionsDefinition(start_date="2026-01-01")
"""Days, UTC. One that a group did not see yet is a bill of which nothing is known, and nobody asks for it."""
MakeBill = Callable[[Settings, date], "Bill"]
_FIGURES = ("used_consumer_hours", "silent_consumer_hours", "used_cost", "p99_s")
_OF_MOVES = ("moved", "rscore", "unread_s", "unread_bytes", "unread_byte_s", "iterations")
_FLOATS = dict.fromkeys(("consumer_hours", "cost", "p99_s"), "float")
_COLUMNS = {"name": "string", **_FLOATS, "moved": "int", "rscore": "float", "setting": "string"}


def make_bill(settings: Settings, day: date) -> "Bill":
    """The bill of a day that is over, from the topics; kept beside the tables unless a better one is.

    Raises:
        TransientError: the day is not over by this machine's clock, or Kafka does not answer.
        PermanentError: it refuses, or the lake does.
    """
    import time

    from kgs_core.lake.topics.kept_bills import KeptBills
    from kgs_core.runtime.bill import bill_of_group, day_of, terms_of

    bill = bill_of_group(settings, day_of(day), round(time.time() * 1000), terms_of(settings))
    if not bill.is_over:  # another machine's clock was ahead; as made, nobody would ask for the rest of the day
        raise TransientError(f"bill of {day}: by this machine's clock the day is not over: it is asked for again")
    if bill.used_hours is not None or bill.recording is not None:
        KeptBills(settings).keep(day, bill.to_dict())
    return bill


def bill_asset(group: GroupConfig, make_bill: MakeBill = make_bill) -> dg.AssetsDefinition:
    """The asset, a partition for each day. In a backfill every day is a run of its own: one stops no other."""

    @dg.asset(
        key=group.key(BILL),
        # The load is that of the topics, which are only observed: no bill of a day that is over turns stale
        deps=[topic for asset in lake_layout(group) for topic in asset.topics],
        partitions_def=DAYS,
        description="What the group's consumers have used in a day, beside what Kafka's own assignment, KEDA and MWF "
        "would have used on that day's load at the same p99 latency.",
        group_name=f"bills{group.suffix}",
        kinds={"table"},
    )
    def bill(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        claim_run(context.instance, context.run.run_id)
        with failures_named():
            found = make_bill(group.settings, date.fromisoformat(context.partition_key))
        for note in found.notes:
            context.log.info(note)
        return dg.MaterializeResult(metadata=metadata_of(found.to_dict()))

    return bill


def metadata_of(bill: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of a bill, as `Bill.to_dict` gives it; what is not known is not there."""
    moves = bill["moves"] or {}
    figures = {f"{row['name']}_consumer_hours": row["consumer_hours"] for row in bill["compared"]}
    # In this order: what was used in all, not only in the time that is compared
    figures |= {name: bill[name] for name in _FIGURES} | {name: moves.get(name) for name in _OF_MOVES}
    found: dict[str, Any] = {name: value for name, value in figures.items() if value is not None}
    found |= {"known_h": bill["known_s"] / 3600, "compared_h": bill["compared_s"] / 3600}
    if bill["compared"]:
        known = ({name: row[name] for name in _COLUMNS if row[name] is not None} for row in bill["compared"])
        found["compared"] = table(known, _COLUMNS)
    if bill["notes"]:
        found["notes"] = dg.MetadataValue.md(bullets(bill["notes"]))
    return found
