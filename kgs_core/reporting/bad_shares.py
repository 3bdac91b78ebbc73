"""Topics of which too many records are bad, by what their consumers report."""

from collections.abc import Collection
from math import floor

from kgs_core.group.protocol import Incarnation
from kgs_core.group.view.group_view import GroupView


def judged_topics(view: GroupView, silent: Collection[Incarnation]) -> dict[str, float | None]:
    """Every topic that somebody reads who is heard -> share of bad records (0 to 1) by its worst reader; None: few.

    Args:
        silent: who is suspected: what such a one said last may be long over, and others may read its topics.
    """
    found: dict[str, float | None] = {}
    for incarnation, member in view.members.items():
        if member.report is None or member.ended or incarnation in silent:
            continue
        for topic in sorted({tp.topic for tp in member.report.owned}):
            shares = (found.get(topic), member.report.bad_shares.get(topic))
            found[topic] = max((share for share in shares if share is not None), default=None)
    return found


def bad_shares(view: GroupView, silent: Collection[Incarnation]) -> dict[str, float]:
    """Those of `judged_topics` of which too many records are bad."""
    judged = judged_topics(view, silent)
    return {topic: share for topic, share in sorted(judged.items()) if share is not None}


def share_text(share: float) -> str:
    """A share of records for people: `all` only when all are meant, never rounded up to it."""
    return "all" if share >= 1 else f"{floor(share * 1000) / 10:g} %"
