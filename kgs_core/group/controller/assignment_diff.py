"""Difference of two assignments in the paper's words: StopConsuming and StartConsuming."""

from collections.abc import Sequence

from kgs_core.group.protocol import MemberAssignment
from kgs_core.group.view.events import Note, Write
from kgs_core.group.view.group_view import GroupView
from kgs_core.model import TopicPartition

STOP_CONSUMING = "StopConsuming"
START_CONSUMING = "StartConsuming"
RETIRE = "Retire"
_NOTHING: frozenset[TopicPartition] = frozenset()


def differences(view: GroupView, write: Write) -> tuple[Note, ...]:
    """A note for every consumer that loses, gains or ends by this Write.

    What leaves its set is a StopConsuming, what enters it a StartConsuming.

    References:
        Landau 2022, section "Message passing": the names of the messages.
    """
    notes: list[Note] = []
    for assignment in write.assignments:
        notes += _of_assignment(view, assignment)
    return tuple(notes)


def _of_assignment(view: GroupView, assignment: MemberAssignment) -> Sequence[Note]:
    member = view.members.get(assignment.member.incarnation)
    last = member.assignment.message if member and member.assignment else None
    before = last.owned if last else _NOTHING
    found = [(STOP_CONSUMING, before - assignment.owned), (START_CONSUMING, assignment.owned - before)]
    notes = [_note(text, assignment, partitions) for text, partitions in found if partitions]
    if assignment.retire and not (last and last.retire):
        notes.append(_note(RETIRE, assignment, _NOTHING))
    return notes


def _note(text: str, assignment: MemberAssignment, partitions: frozenset[TopicPartition]) -> Note:
    fields: dict[str, object] = {"consumer": assignment.member.consumer, "incarnation": assignment.member.incarnation}
    if partitions:
        fields |= {"count": len(partitions), "partitions": tuple(str(p) for p in sorted(partitions))}
    return Note(text, fields)
