"""The end of a demonstration: what was produced against what the lake holds."""

from dataclasses import dataclass

from rich.table import Table

from kgs_core.demo.history import GroupFigures
from kgs_core.demo.live_table import count, figures_table


@dataclass(frozen=True, slots=True)
class TopicResult:
    """One topic. None: not known.

    Attributes:
        produced: records that the brokers acknowledged.
        rows: in the topic's table.
        lost: records that are in no row.
        doubled: rows beyond the first of a record.
        lag: offsets not read yet.
    """

    topic: str
    produced: int | None
    rows: int | None
    lost: int | None
    doubled: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class FinalReport:
    """All topics.

    Attributes:
        audited: whether rows were compared with the offsets, one by one.
        problems: what went wrong, one line each.
        skipped: why there was no audit.
    """

    topics: tuple[TopicResult, ...]
    audited: bool
    problems: tuple[str, ...] = ()
    skipped: str = ""

    @property
    def is_exact(self) -> bool:
        """Whether it is proven that every record has arrived exactly once."""
        return (
            self.audited
            and not self.problems
            and bool(self.topics)
            and all(t.produced == t.rows and t.lost == 0 and t.doubled == 0 for t in self.topics)
        )

    @property
    def is_wrong(self) -> bool:
        """Whether something went wrong; what was not looked at is not wrong."""
        return bool(self.problems) or (self.audited and not self.is_exact)


def summary_table(summary: FinalReport) -> Table:
    """One row per topic and one of totals."""
    table = figures_table("topic", "records produced", "rows in the lake", "lost", "doubled", "unread")
    for topic in summary.topics:
        table.add_row(topic.topic, *map(count, _figures(topic)))
    table.add_row("all", *map(count, _totals(summary)), style="bold")
    return table


def verdict(summary: FinalReport) -> list[str]:
    """The end in words, the last line the most important."""
    produced, rows, lost, doubled, _ = map(count, _totals(summary))
    lines = [*summary.problems]
    if not summary.audited:
        return [*lines, f"the audit was skipped: {summary.skipped}"]
    figures = f"{produced} records produced, {rows} rows in the lake, lost {lost}, doubled {doubled}"
    return [*lines, f"{'exactly once' if summary.is_exact else 'NOT PROVEN exactly once'}: {figures}"]


def group_lines(figures: GroupFigures) -> list[str]:
    """What happened to the group, in words."""
    mean = "?" if figures.mean_consumers is None else f"{figures.mean_consumers:.1f}"
    return [
        f"{figures.rebalances} rebalances moved {figures.moved} partitions, Rscore {figures.rscore:.2f} in all",
        f"consumers: {mean} in the mean, {figures.max_consumers} at most (spares not counted)",
    ]


def _figures(topic: TopicResult) -> tuple[int | None, ...]:
    return topic.produced, topic.rows, topic.lost, topic.doubled, topic.lag


def _totals(summary: FinalReport) -> list[int | None]:
    columns = list(zip(*map(_figures, summary.topics), strict=True)) or [(None,)] * 5
    return [None if None in column else sum(n for n in column if n is not None) for column in columns]
