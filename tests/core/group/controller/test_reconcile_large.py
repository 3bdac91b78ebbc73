"""A large group is handled in moderate steps."""

from random import Random

from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.member_view import MemberView
from kgs_core.group.view.reconcile import reconcile
from kgs_core.model import ConsumerId, TopicPartition
from tests.core.group.controller.group_words import add, at, report


def test_large_groups_are_handled_in_moderate_steps(monkeypatch):
    """All of 5,000 partitions change hands among 60 consumers: each set is asked for twice, not once a partition."""
    partitions = [TopicPartition(f"t{n // 100}", n % 100) for n in range(5000)]
    random = Random(0)
    desired = {p: ConsumerId(random.randint(1, 60)) for p in partitions}
    view = add(GroupView(), *(at(n, report(f"{n}a")) for n in range(1, 61)))
    view = add(view, *(at(9, o) for o in reconcile(view, desired, range(1, 61), frozenset(), strict=True).assignments))
    held = {o.member: o.owned for o in (m.assignment.message for m in view.members.values())}
    asked = []
    plain = MemberView.possibly_owned
    noting = property(lambda known: asked.append(known.member) or plain.fget(known))
    monkeypatch.setattr(MemberView, "possibly_owned", noting)
    moved = {p: ConsumerId(1 + consumer % 60) for p, consumer in desired.items()}
    found = reconcile(view, moved, range(1, 61), frozenset(), strict=True)
    assert {o.member: o.revoking for o in found.assignments} == held
    assert len(asked) <= 2 * 60
