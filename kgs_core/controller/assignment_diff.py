"""Difference of two assignments in the paper's words: StopConsuming and StartConsuming."""

from collections.abc import Sequence

from kgs_core.controller.events import Note, Write
from kgs_core.controller.group_view import GroupView
from kgs_core.model import TopicPartition
from kgs_core.protocol import Order

STOP_CONSUMING = "StopConsuming"
START_CONSUMING = "StartConsuming"
RETIRE = "Retire"
_NOTHING: frozenset[TopicPartition] = frozenset()


def differences(view: GroupView, write: Write) -> tuple[Note, ...]:
    """A note for every consumer that loses, gains or ends by this Write.

    What leaves its set is a StopConsuming, what enters it a StartConsuming.

    Args:
        view: before the Write.
        write: that was committed.

    References:
        Landau 2022, section "Message passing": the names of the messages.
    """
    notes: list[Note] = []
    for order in write.orders:
        notes += _of_order(view, order)
    return tuple(notes)


def _of_order(view: GroupView, order: Order) -> Sequence[Note]:
    member = view.members.get(order.member.incarnation)
    last = member.order.message if member and member.order else None
    before = last.owned if last else _NOTHING
    found = [(STOP_CONSUMING, before - order.owned), (START_CONSUMING, order.owned - before)]
    notes = [_note(text, order, partitions) for text, partitions in found if partitions]
    if order.retire and not (last and last.retire):
        notes.append(_note(RETIRE, order, _NOTHING))
    return notes


def _note(text: str, order: Order, partitions: frozenset[TopicPartition]) -> Note:
    fields: dict[str, object] = {"consumer": order.member.consumer, "incarnation": order.member.incarnation}
    if partitions:
        fields |= {"count": len(partitions), "partitions": tuple(str(p) for p in sorted(partitions))}
    return Note(text, fields)
