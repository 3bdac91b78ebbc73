"""A plan that nothing forces, as people are shown it: what it changes, what becomes of it, what it costs to wait."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from kgs_core.config import PackingSettings
from kgs_core.config.bill import BillSettings
from kgs_core.controller.approval import assignment_after, consent, misfit, plan_end
from kgs_core.controller.group_view import GroupView
from kgs_core.controller.plain_text import printable
from kgs_core.model import BytesPerSecond, WriteSpeeds
from kgs_core.packing import rscore
from kgs_core.planning.overload import consumer_loads
from kgs_core.planning.plan import Move
from kgs_core.reporting.plan_json import RSCORE_DIGITS, rounded

PlanState = Literal["waiting", "approved", "recommended"]
"""For a person, for the controller, for nobody."""
PLAN_STATES: tuple[PlanState, ...] = ("waiting", "approved", "recommended")
NO_PRICE = BillSettings()


@dataclass(frozen=True, slots=True)
class WaitingPlan:
    """The plan that the controller holds.

    Attributes:
        offset: of the record that proposed it.
        rscore: of its moves at the speeds of now, or as it was made where these are not known.
        consumers_before: how many read something now; `consumers_after`: by the plan.
        moves: from the fastest to the slowest.
        expires_in_s: then it is looked for anew.
        may_be_approved: else it is a recommendation only.
        approved_by: who has approved it; None: nobody yet.
        misfit: why it does not fit the load any more; empty: it does, as far as speeds are known.
        age_s: since it was proposed.
        cost_per_hour: of `consumers_too_many`, in `currency`; None: the price of a consumer is not known.
        above_capacity: what consumers are given above `packing_capacity_bytes_per_s` until then, bytes/s; None: speeds
            are not known.
    """

    plan_id: str
    offset: int
    algorithm: str
    reason: str
    rscore: float
    consumers_before: int
    consumers_after: int
    moves: tuple[Move, ...]
    expires_in_s: float
    may_be_approved: bool
    approved_by: str | None = None
    misfit: str = ""
    above_capacity: BytesPerSecond | None = None
    age_s: float = 0.0
    cost_per_hour: float | None = None
    currency: str = ""

    @property
    def consumers_too_many(self) -> int:
        """What each hour of waiting costs, in consumer hours."""
        return max(0, self.consumers_before - self.consumers_after)

    @property
    def money(self) -> str:
        """The same in money, as `, 0.10 EUR`; empty: the price of a consumer is not known."""
        if self.cost_per_hour is None:
            return ""
        return f", {self.cost_per_hour:,.2f}{f' {self.currency}' if self.currency else ''}"

    @property
    def state(self) -> PlanState | None:
        """What it waits for; None: it does not fit the load, and nobody holds it any more."""
        if self.misfit:
            return None
        if self.approved_by is not None:
            return "approved"
        return "waiting" if self.may_be_approved else "recommended"

    def __str__(self) -> str:
        """In one line, for people; the time that is left stands beside it."""
        cost = f"to wait costs {self.consumers_too_many} consumer hours an hour{self.money}"
        change = (
            f"consumers: {self.consumers_after} instead of {self.consumers_before}, {len(self.moves):,} partitions to "
            f"move, Rscore {self.rscore:.3f}"
        )
        if self.misfit:
            return f"plan {self.plan_id} fits no more: {self.misfit}"
        if self.approved_by is not None:
            return f"plan {self.plan_id} is approved by {printable(self.approved_by)}: {change}"
        what = f"waits for `kgs approve {self.plan_id}`" if self.may_be_approved else "is recommended, not carried out"
        return f"plan {self.plan_id} {what}: {change}; {cost}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON.

        Returns:
            {"id", "algorithm", "reason", "rscore", "consumers_before", "consumers_after", "consumers_too_many",
            "moves": [{"topic", "partition", "from", "to", "bytes_per_s"}], "expires_in_s", "may_be_approved",
            "approved_by" (null: nobody), "misfit", "above_capacity" (bytes/s; null: not known), "age_s",
            "cost_per_hour" (null: no price is known), "currency"}
        """
        return {
            "id": self.plan_id,
            "algorithm": self.algorithm,
            "reason": self.reason,
            "rscore": round(self.rscore, RSCORE_DIGITS),
            "consumers_before": self.consumers_before,
            "consumers_after": self.consumers_after,
            "consumers_too_many": self.consumers_too_many,
            "moves": [
                {
                    "topic": move.partition.topic,
                    "partition": move.partition.partition,
                    "from": move.source,
                    "to": move.destination,
                    "bytes_per_s": rounded(move.bytes_per_s),
                }
                for move in self.moves
            ],
            "expires_in_s": rounded(self.expires_in_s),
            "may_be_approved": self.may_be_approved,
            "approved_by": self.approved_by,
            "misfit": self.misfit,
            "above_capacity": rounded(self.above_capacity),
            "age_s": rounded(self.age_s),
            "cost_per_hour": rounded(self.cost_per_hour),
            "currency": self.currency,
        }


def in_vain(plan: WaitingPlan, packing: PackingSettings, time_ms: int) -> str:
    """Why an approval now would bring nothing about; empty: it would.

    Args:
        plan: that waits.
        packing: as configured.
        time_ms: wall clock, ms since 1970.
    """
    if packing.forced_only_for_s(time_ms) < plan.expires_in_s:
        return ""
    until = packing.forced_only_until(time_ms)
    return (
        f"it ends in {plan.expires_in_s / 60:,.0f} min, and by packing.forced_moves_only_utc nothing is moved until "
        f"{until}: approve the one that is proposed then, or set packing.approval_expires_s"
    )


def waiting_plan(
    view: GroupView, speeds: WriteSpeeds, packing: PackingSettings, time_ms: int, bill: BillSettings = NO_PRICE
) -> WaitingPlan | None:
    """The plan that the group's controller holds; None: there is none, as far as the topics tell.

    Args:
        view: what the topics say.
        speeds: write speeds as measured last, bytes/s; without those that are not known.
        packing: with the capacities in use.
        time_ms: wall clock, ms since 1970.
        bill: what a consumer costs.
    """
    plan, target = view.plan, view.target
    if plan is None or target is None:
        return None
    age_s = max(0, time_ms - plan.timestamp_ms) / 1000
    if plan_end(view, age_s):
        return None
    said, stands = plan.message, target.message
    known = {p: speeds[p] for p in stands.assignment if p in speeds}
    is_known = known.keys() == stands.assignment.keys()
    sources = ((p, stands.assignment[p], c) for p, c in said.moves.items() if p in stands.assignment)
    moves = [Move(p, before, after, known.get(p, said.speeds.get(p, 0.0))) for p, before, after in sources]
    after, capacity = assignment_after(stands, said), packing.packing_capacity_bytes_per_s
    loads = consumer_loads(stands.assignment, known) if is_known else {}
    approval = consent(view)
    consumers_before, price = len(set(stands.assignment.values())), bill.price_per_consumer_hour
    return WaitingPlan(
        plan_id=said.plan_id,
        offset=plan.offset,
        algorithm=said.algorithm,
        reason=said.reason,
        rscore=rscore(stands.assignment, after, known, capacity) if is_known else said.rscore,
        consumers_before=consumers_before,
        consumers_after=said.consumers,
        moves=tuple(sorted(moves, key=lambda move: (-move.bytes_per_s, move.partition))),
        expires_in_s=max(0.0, said.expires_after_s - age_s),
        may_be_approved=said.may_be_approved,
        approved_by=approval.message.by if approval is not None else None,
        misfit=misfit(said, stands, known, packing.consumer_capacity_bytes_per_s) if is_known else "",
        above_capacity=math.fsum(max(0.0, load - capacity) for load in loads.values()) if is_known else None,
        age_s=age_s,
        cost_per_hour=None if price is None else price * max(0, consumers_before - said.consumers),
        currency=bill.currency,
    )
