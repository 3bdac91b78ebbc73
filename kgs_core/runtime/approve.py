"""Approval of a plan: what `kgs approve` and Dagster's `apply_plan_job` do."""

import time
from dataclasses import dataclass

from kgs_core.adapters.group.operator_topic import OperatorTopicWriter
from kgs_core.adapters.group.topics import GroupTopic, GroupTopics
from kgs_core.adapters.kafka.admin import KafkaAdmin
from kgs_core.adapters.kafka.client_config import admin_client
from kgs_core.config import Settings
from kgs_core.controller.approval import refusal, was_carried_out
from kgs_core.controller.plain_text import printable
from kgs_core.errors import UnsafeError
from kgs_core.protocol import Approval, RunState
from kgs_core.reporting.status import GroupStatus
from kgs_core.reporting.waiting_plan import WaitingPlan, in_vain
from kgs_core.runtime.group_status import GroupWatch


@dataclass(frozen=True, slots=True)
class Approved:
    """Result of an approval.

    Attributes:
        plan: None: it was carried out before.
        is_new: the approval was written now; else it was there, or the plan was carried out.
    """

    plan: WaitingPlan | None
    is_new: bool


def approve_plan(settings: Settings, plan_id: str, by: str) -> Approved:
    """Approve one plan that waits; the controller looks once more whether it may be carried out.

    Killed before the record is there, nothing has happened; after it, the approval stands. Twice is as once.

    Args:
        settings: of the group.
        plan_id: as `kgs status` shows it.
        by: who approves, for people.

    Raises:
        UnsafeError: it does not wait, has expired, or the group or its load has changed under it.
        PortError: Kafka does not answer, or refuses.
    """
    with GroupWatch(settings) as watch:
        found = watch.look(with_lake=False)
        view = watch.view
    if was_carried_out(found.target, plan_id):
        return Approved(None, is_new=False)
    plan = found.plan if found.plan is not None and found.plan.plan_id == plan_id else None
    age_s = max(0.0, time.time() - view.plan.timestamp_ms / 1000) if view.plan is not None else 0.0
    why = refusal(view, plan_id, age_s) or (plan.misfit if plan is not None else "it has ended")
    if not why and view.run_state is not RunState.RUNNING:
        why = f"people want the group {view.run_state}: nothing is moved before `kgs resume`"
    if not why and plan is not None and plan.approved_by is None:
        why = in_vain(plan, settings.packing, round(time.time() * 1000))
    if why or plan is None:
        raise UnsafeError(f"group {settings.group}: plan {plan_id} is not approved: {why}: see `kgs status`")
    if plan.approved_by is not None:
        return Approved(plan, is_new=False)
    topics = GroupTopics(settings, KafkaAdmin(admin_client(settings)), [GroupTopic.OPERATOR])
    writer = OperatorTopicWriter(topics)
    try:
        writer.write(Approval(plan_id, plan.offset, by, round(time.time() * 1000)))
    finally:
        writer.close()
    return Approved(plan, is_new=True)


def is_carried_out(found: GroupStatus, plan: WaitingPlan) -> bool:
    """Whether an approved plan has been carried out, and every partition is where it belongs.

    Args:
        found: the group now.
        plan: as it was approved.

    Raises:
        UnsafeError: it has ended otherwise, and never will be.
    """
    if was_carried_out(found.target, plan.plan_id):
        return found.is_converged
    if found.plan is None or (found.plan.plan_id, found.plan.offset) != (plan.plan_id, plan.offset):
        last = f"; the last change: {printable(found.target.reason)}" if found.target is not None else ""
        why = f"it has expired, or the group or its load has changed{last}"
        raise UnsafeError(f"group {found.group}: plan {plan.plan_id} was not carried out: {why}: see `kgs status`")
    return False
