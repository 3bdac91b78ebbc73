"""The group that `kgs plan` packs for, from what the topics hold."""

from contextlib import nullcontext
from types import SimpleNamespace

from kgs_core.group.protocol import ClassOfTarget, Received, Target
from kgs_core.model import TopicPartition
from kgs_core.runtime import group_status

A = TopicPartition("t", 0)


def test_consumers_have_the_classes_that_the_target_gives_them(monkeypatch):
    classes = {"large": ClassOfTarget((1, 2), 220.0)}
    target = Target("search", {A: 1}, (2,), {A: 1.0}, 100.0, 0.0, "", (), (), 0, classes=classes)
    reader = SimpleNamespace(read_to_end=lambda: [Received(target, 0, 0)])
    topics = SimpleNamespace(reader=lambda: reader)
    monkeypatch.setattr(group_status, "GroupConnections", lambda settings: nullcontext(topics))
    group, _, view = group_status.load_group(None)
    assert group.classes == {1: "large", 2: "large"}
    assert view.target.message.capacity_of == {1: 220.0, 2: 220.0}
