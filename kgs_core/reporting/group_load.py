"""Load of a consumer group that is not kgs's, for people and for programs, beside the plan made for it."""

from collections.abc import Iterator, Sequence
from typing import Any

from kgs_core.group.view.plain_text import counted, printable
from kgs_core.planning.group_load import GroupLoad
from kgs_core.planning.learnt_capacity import Source
from kgs_core.planning.plan import Plan
from kgs_core.reporting.plain_values import picked

_OF_MEMBER = (
    "consumer",
    "name",
    "partitions",
    "written_bytes_per_s",
    "read_bytes_per_s",
    "behind_bytes",
    "is_flat_out",
)
_SHOWN = 5


def group_values(found: GroupLoad, plan: Plan, capacity: Source) -> dict[str, Any]:
    """Plain values for JSON; null where something is not known.

    Returns:
        {"name", "members": [{"consumer" (its number in the plan), "name", "partitions", "written_bytes_per_s",
        "read_bytes_per_s", "behind_bytes", "is_flat_out"}], "without_member": [partition], "advice": [text]}
    """
    return {
        "name": found.group,
        "members": [picked(one, *_OF_MEMBER) for one in found.members],
        "without_member": [str(tp) for tp in found.unread],
        "advice": list(group_sentences(found, plan, capacity)),
    }


def group_sentences(found: GroupLoad, plan: Plan, capacity: Source) -> Iterator[str]:
    """What a balanced assignment would change, each in one sentence; `capacity`: where that of the plan comes from."""
    members, needed = len(found.members), plan.consumers
    if members > needed:
        yield f"{counted(members, 'member')} where {needed} would do: {members - needed} too many"
    elif 0 < members < needed:
        yield f"{counted(members, 'member')} where {needed} are needed: {needed - members} too few"
    if capacity == "first":
        yield "what a member can read is not known (none is behind): that of kgs's consumers counts, or give --capacity"
    named = {
        "above the packing capacity": [
            one.name for one in found.members if (one.written_bytes_per_s or 0.0) > plan.capacity
        ],
        "without a partition": [one.name for one in found.members if not one.partitions],
        "without a member": [str(tp) for tp in found.unread],
        "not known how far behind (no committed offset, or no size)": [
            one.name for one in found.members if one.behind_bytes is None
        ],
    }
    yield from (f"{what}: {_named(names)}" for what, names in named.items() if names)
    if members == needed and not plan.moves:
        yield "balanced: nothing to move"


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{', '.join(map(printable, names[:_SHOWN]))}{more}"
