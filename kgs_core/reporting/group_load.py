"""Load of a consumer group that is not kgs's, for people and for programs, beside the plan made for it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kgs_core.group.view.plain_text import counted, printable
from kgs_core.model import TopicPartition
from kgs_core.planning.group_load import GroupLoad, MemberLoad
from kgs_core.planning.learnt_capacity import Source
from kgs_core.planning.overload import FastPartition
from kgs_core.planning.plan import Plan
from kgs_core.reporting.plain_values import picked, plain

_FIGURES = ("written_bytes_per_s", "read_bytes_per_s", "behind_bytes")
_OF_MEMBER = ("consumer", "name", "partitions", *_FIGURES, "is_flat_out", "is_stuck")
_SHOWN, _LONGEST_NAME = 5, 60


def group_values(found: GroupLoad, plan: Plan, capacity: Source) -> dict[str, Any]:
    """Plain values for JSON; null where something is not known.

    Returns:
        {"name", "members": [{"consumer" (its number in the plan), "name", "partitions", "written_bytes_per_s",
        "read_bytes_per_s", "behind_bytes", "is_flat_out", "is_stuck"}], "without_member": [partition],
        "behind_bytes": {partition: bytes}, "advice": [text]}
    """
    return {
        "name": found.group,
        "members": [picked(one, *_OF_MEMBER) for one in found.members],
        "without_member": [str(tp) for tp in found.unread],
        "behind_bytes": plain({str(tp): lag for tp, lag in found.lag_bytes.items()}),
        "advice": list(group_sentences(found, plan, capacity)),
    }


def group_sentences(found: GroupLoad, plan: Plan, capacity: Source) -> Iterator[str]:
    """What a balanced assignment would change, each in one sentence; `capacity`: where that of the plan comes from."""
    unknown = sorted(found.current.keys() - plan.target.keys())
    unmeasured = [one for one in found.members if one.written_bytes_per_s is None]
    if unknown or unmeasured:
        yield f"how many members are needed is not known: no speed yet of {_told(unknown, unmeasured)}"
    else:
        yield from _count(found, plan, capacity)
    too_fast = [each.partition for each in plan.overloaded if isinstance(each, FastPartition)]
    for what, names in {
        "faster than a member, which only more partitions of the topic or a greater capacity cure": _texts(too_fast),
        "above the packing capacity": _names(found, lambda one: (one.written_bytes_per_s or 0.0) > plan.capacity),
        "behind, and has committed nothing meanwhile": _names(found, lambda one: one.is_stuck),
        "without a partition": _names(found, lambda one: not one.partitions),
        "without a member": _texts(sorted(set(found.unread) - set(found.read_by_others))),
        "without a member, and read all the same (a consumer that assigns itself)": _texts(found.read_by_others),
        "not known how far behind (no committed offset, or none that the log has)": _names(
            found, lambda one: one.behind_bytes is None
        ),
    }.items():
        if names:
            yield f"{what}: {_shown(names)}"


def member_name(one: MemberLoad) -> str:
    """Its name on one line, and not longer than a column of a table."""
    name = printable(one.name)
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _count(found: GroupLoad, plan: Plan, capacity: Source) -> Iterator[str]:
    members, needed = len(found.members), plan.consumers
    each = f"{plan.capacity / 1e6:.3g} MB/s"
    if members > needed:
        yield f"{counted(members, 'member')} where {needed} would do, at {each}: {members - needed} too many"
    elif members < needed:
        yield f"{counted(members, 'member')} where {needed} are needed, at {each}: {needed - members} too few"
    elif not (plan.moves or found.unread or plan.overloaded or any(map(_is_in_doubt, found.members))):
        yield f"balanced, at {each} a member: nothing to move"
    if capacity == "first":
        yield "what a member can read was not seen: none was flat out. That of kgs's consumers counts, or --capacity"


def _is_in_doubt(one: MemberLoad) -> bool:
    return one.behind_bytes is None or one.is_stuck


def _names(found: GroupLoad, fits: Callable[[MemberLoad], bool]) -> list[str]:
    return [member_name(one) for one in found.members if fits(one)]


def _texts(partitions: Iterable[TopicPartition]) -> list[str]:
    return [str(tp) for tp in partitions]


def _told(partitions: Sequence[TopicPartition], members: Sequence[MemberLoad]) -> str:
    return _shown(_texts(partitions) or [f"what {member_name(one)} has" for one in members])


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
