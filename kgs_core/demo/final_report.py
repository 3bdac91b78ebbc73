"""Final report of a demonstration: the audit of the lake, and what was produced beside what has arrived."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.table import Table

from kgs_core.config import Settings
from kgs_core.demo.display import figures_table
from kgs_core.demo.snapshot import DemoSnapshot, GroupFigures, Produced
from kgs_core.group.view.plain_text import count
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.rule import Fault, PartitionAudit, TableAudit
from kgs_core.model import TopicPartition, whole_sum


@dataclass(frozen=True, slots=True)
class TopicResult:
    """One topic. None: not known.

    Attributes:
        produced: records that the brokers acknowledged.
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
    """Result of a demonstration, topic by topic.

    Attributes:
        audited: whether rows were compared with the offsets, one by one.
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


def report_table(report: FinalReport) -> Table:
    """One row per topic and one of totals."""
    table = figures_table("topic", "records produced", "rows in the lake", "lost", "doubled", "unread")
    for topic in report.topics:
        table.add_row(topic.topic, *map(count, _figures(topic)))
    table.add_row("all", *map(count, _totals(report)), style="bold")
    return table


def verdict(report: FinalReport) -> list[str]:
    """The end in words, the last line the most important."""
    produced, rows, lost, doubled, _ = map(count, _totals(report))
    lines = [*report.problems]
    if not report.audited:
        return [*lines, f"the audit was skipped: {report.skipped}"]
    figures = f"{produced} records produced, {rows} rows in the lake, lost {lost}, doubled {doubled}"
    return [*lines, f"{'exactly once' if report.is_exact else 'NOT PROVEN exactly once'}: {figures}"]


def group_lines(figures: GroupFigures) -> list[str]:
    """What happened to the group, in words."""
    mean = "?" if figures.mean_consumers is None else f"{figures.mean_consumers:.1f}"
    return [
        f"{figures.rebalances} rebalances moved {figures.moved} partitions, Rscore {figures.rscore:.2f} in all",
        f"consumers: {mean} in the mean, {figures.max_consumers} at most (spares not counted)",
    ]


def _figures(topic: TopicResult) -> tuple[int | None, ...]:
    return topic.produced, topic.rows, topic.lost, topic.doubled, topic.lag


def _totals(report: FinalReport) -> list[int | None]:
    columns = list(zip(*map(_figures, report.topics), strict=True)) or [(None,)] * 5
    return [whole_sum(column) for column in columns]


def close(
    settings: Settings, last: DemoSnapshot, say: Callable[[str], None], problems: Sequence[str], *, with_log: bool
) -> FinalReport:
    """The final report; audited if everything that was produced has been read.

    Args:
        last: the state after the end of all processes.
        with_log: whether Kafka's log is read once more and compared, too.

    Raises:
        PortError: Kafka or the lake did not answer.
    """
    found = list(problems)
    if last.produced is not None and last.produced.failed:
        found.append(f"{last.produced.failed} records were not taken by the broker: see generator.log")
    if reason := reason_to_skip(last):
        return FinalReport(_unaudited(last), audited=False, problems=tuple(found), skipped=reason)
    say("auditing: every row of every table against the positions" + (" and Kafka's log" if with_log else ""))
    audit = audit_lake(settings, with_log=with_log)
    if unread := [table.problem for table in audit.tables if table.problem]:
        return FinalReport(_unaudited(last), audited=False, problems=tuple(found), skipped=unread[0])
    for table in audit.tables:
        findings = [
            f"{table.topic}:{p.stored.partition}: {finding}" for p in table.partitions for finding in p.findings
        ]
        found += findings
    return FinalReport(compare(last.produced, audit.tables), audited=True, problems=tuple(found))


def reason_to_skip(last: DemoSnapshot) -> str:
    """Why an audit would prove nothing; empty when it would."""
    if last.produced is None:
        return "nothing was produced"
    if not last.produced.finished:
        return "the generator gave no final figures"
    if last.lake.lag is None:
        unknown = ", ".join(table.topic for table in last.lake.tables if table.lag is None)
        return ": ".join((f"not known what is unread of {unknown or 'the topics'}", *last.lake.problems[:1]))
    if last.lake.lag:
        return f"{last.lake.lag:,} records were not read yet"
    return ""


def compare(produced: Produced | None, tables: Sequence[TableAudit]) -> tuple[TopicResult, ...]:
    """One result per table: what the audit found, and what was produced and is in no row, partition by partition."""
    return tuple(_result(produced, table) for table in tables)


def _result(produced: Produced | None, table: TableAudit) -> TopicResult:
    sent = produced.partitions if produced is not None else {}
    audited = {p.stored.partition: p for p in table.partitions}
    numbers = {*audited, *(tp.partition for tp in sent if tp.topic == table.topic)}
    lost = sum(_lost(sent.get(TopicPartition(table.topic, n), 0), audited.get(n)) for n in numbers)
    total = sum(n for tp, n in sent.items() if tp.topic == table.topic) if produced is not None else None
    return TopicResult(table.topic, total, table.rows, lost, table.count(Fault.DOUBLED), 0)


def _lost(sent: int, partition: PartitionAudit | None) -> int:
    """Records that are in no row: those between the positions, or those that were produced, whichever are more."""
    if partition is None:
        return sent
    arrived = partition.rows + partition.dead_letters - partition.count(Fault.DOUBLED) - partition.count(Fault.FOREIGN)
    return max(partition.count(Fault.LOST), sent - arrived)


def _unaudited(last: DemoSnapshot) -> tuple[TopicResult, ...]:
    sent = last.produced.topics if last.produced is not None and last.produced.finished else None
    return tuple(
        TopicResult(t.topic, None if sent is None else sent.get(t.topic, 0), t.rows, None, None, t.lag)
        for t in last.lake.tables
    )
