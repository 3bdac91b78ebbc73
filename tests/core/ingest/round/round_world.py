"""A world that a round asks: logs, tables, and answers of every kind. Positions move by compare-and-set only.

Topic `a` has all the trouble there is, `b` none at all: what happens to `b` shows whether trouble stays where it is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from kgs_core.ingest.round.progress import TopicProgress
from kgs_core.ingest.round.questions import (
    AddColumns,
    Answer,
    AskEnds,
    AskLogs,
    AskPositions,
    AskTopicIds,
    Commit,
    Ends,
    Landed,
    Logs,
    Question,
    ReadBatch,
    ReadResult,
    TopicIds,
    Trouble,
)
from kgs_core.ingest.round.state import RoundLimits
from kgs_core.ingest.round.stops import StopCause
from kgs_core.lake.rule.batch import TablePositions, TopicBatch
from kgs_core.model import OffsetRange, TopicId, TopicPartition

PACE = RoundLimits(1_000_000, 0.0)
SICK, WELL = "a", "b"
SICK_ONE = TopicPartition(SICK, 0)
ID = TopicId("id")
NO_ANSWER = Trouble("no answer")
UNSAFE = Trouble("appendOnly was unset", StopCause.TABLE)
DENIED = Trouble("not authorized", StopCause.DENIED)


@dataclass(frozen=True)
class World:
    """What is true outside.

    Attributes:
        ends: log end of each partition; logs begin at 0.
        lake: position of each partition in its table.
        late: a commit that may still land, at any time.
        rivals: how often another consumer may still commit.
        bad: offset of a record of `a:0` that cannot be taken; None: there is none.
        unjudged: offset of a record of `a:0` that waits for a registry, in one reading; the next may find it judged.
        most: so many records of a partition are read at once.
    """

    ends: Mapping[TopicPartition, int]
    lake: Mapping[TopicPartition, int]
    late: TopicBatch | None = None
    rivals: int = 0
    bad: int | None = None
    unjudged: int | None = None
    most: int = 1_000_000

    def commits(self, batch: TopicBatch) -> "World | None":
        """The world after a compare-and-set; None where it is refused."""
        tps = {TopicPartition(batch.topic, p): r for p, r in batch.ranges.items()}
        if any(self.lake[tp] != r.start for tp, r in tps.items()):
            return None
        return replace(self, lake={**self.lake, **{tp: r.end for tp, r in tps.items()}})

    def positions(self, topic: str, partitions: frozenset[int]) -> TablePositions:
        """What the table says."""
        return TablePositions({p: self.lake[TopicPartition(topic, p)] for p in partitions})

    def range_of(self, tp: TopicPartition, start: int) -> OffsetRange:
        """What is read of a partition: everything that there is, up to a bad record or one that waits."""
        end = self.ends[tp]
        if tp == TopicPartition(SICK, 0):
            end = min(end, *(at for at in (self.bad, self.unjudged) if at is not None), end)
        return OffsetRange(start, max(start, end))

    def key(self) -> object:
        """Equal for worlds that are."""
        late = self.late and (self.late.topic, tuple(self.late.ranges.items()))
        return (tuple(sorted(self.lake.items())), late, self.rivals, self.bad, tuple(sorted(self.ends.items())))


def starts_of(question: ReadBatch) -> dict[TopicPartition, int]:
    """Everything that a `ReadBatch` reads."""
    planned = question.planned
    exact = {TopicPartition(planned.topic, p): r.start for p, r in planned.ranges.items()} if planned else {}
    return {**question.start, **exact}


def good_read(world: World, question: ReadBatch, without: tuple[str, ...] = ()) -> ReadResult:
    """What reading comes to when nothing is wrong (but a bad record)."""
    result, starts = ReadResult(), starts_of(question)
    for topic in sorted({tp.topic for tp in starts} - set(without)):
        ranges = {tp.partition: world.range_of(tp, at) for tp, at in starts.items() if tp.topic == topic}
        ranges = {p: r._replace(end=min(r.end, r.start + world.most)) for p, r in ranges.items() if r.end > r.start}
        if ranges:
            records = sum(r.end - r.start for r in ranges.values())
            result.batches.append(TopicBatch(topic, ID, ranges, (), records=records))
    bad = TopicPartition(SICK, 0)
    if world.bad is not None and SICK not in without and 0 <= world.bad - starts.get(bad, world.bad + 1) < world.most:
        result.stopped[bad] = (world.bad, "not JSON")
    waits = world.unjudged is not None and (world.bad is None or world.unjudged < world.bad)
    if waits and SICK not in without and 0 <= world.unjudged - starts.get(bad, world.unjudged + 1) < world.most:
        result.waiting[bad] = (world.unjudged, "no registry")
        result.stopped.clear()
    return result


def good_answer(world: World, question: Question) -> tuple[World, Answer]:
    """The answer of a world in which nothing is wrong."""
    match question:
        case AskEnds(tps=tps):
            return world, Ends({tp: world.ends[tp] for tp in tps})
        case AskTopicIds(topics=topics):
            return world, TopicIds(dict.fromkeys(topics, ID))
        case AskLogs(tps=tps):
            return world, Logs({tp: (0, world.ends[tp]) for tp in tps})
        case AskPositions(topic=topic, partitions=partitions):
            return world, world.positions(topic, partitions)
        case ReadBatch():
            return world, good_read(world, question)
        case Commit() | AddColumns():
            after = world.commits(question.batch) if isinstance(question, Commit) else world
            return after or world, Landed(committed=after is not None)


def every_answer(world: World, question: Question) -> Iterator[tuple[World, Answer]]:
    """Each answer that `a` may get; `b` gets the good one in all of them."""
    yield good_answer(world, question)
    match question:
        case AskEnds() | AskTopicIds() | AskLogs():
            yield from ((world, answer) for answer in _told_by_kafka(world, question))
        case AskPositions(topic="a") | AddColumns(topic="a"):
            yield from ((world, trouble) for trouble in (NO_ANSWER, UNSAFE, DENIED))
        case ReadBatch() if SICK_ONE in starts_of(question):
            yield from _reads(world, question, SICK_ONE)
        case Commit(batch=batch) if batch.topic == SICK:
            yield from _commits(world, batch)


def _told_by_kafka(world: World, question: AskEnds | AskTopicIds | AskLogs) -> Iterator[Answer]:
    good = good_answer(world, question)[1]
    if isinstance(good, Ends) and SICK_ONE in good.ends:
        for end in (NO_ANSWER, DENIED, 0):
            yield Ends({**good.ends, SICK_ONE: end})
        yield Ends({tp: end for tp, end in good.ends.items() if tp != SICK_ONE})
    elif isinstance(good, TopicIds) and SICK in good.ids:
        for found in (None, TopicId("other"), NO_ANSWER, DENIED):
            yield TopicIds({**good.ids, SICK: found})
    elif isinstance(good, Logs) and SICK_ONE in good.logs:
        for log in ((5, 9), (0, 0), NO_ANSWER, DENIED):
            yield Logs({**good.logs, SICK_ONE: log})


def _commits(world: World, batch: TopicBatch) -> Iterator[tuple[World, Answer]]:
    yield world, NO_ANSWER
    yield world, UNSAFE
    yield replace(world, late=batch), NO_ANSWER
    if (after := world.commits(batch)) is not None:
        yield after, NO_ANSWER
        yield after, UNSAFE


def _reads(world: World, question: ReadBatch, sick: TopicPartition) -> Iterator[tuple[World, ReadResult]]:
    def result(*without: str, **trouble: object) -> ReadResult:
        found = good_read(world, question, without)
        for name, value in trouble.items():
            getattr(found, name).update(value)
        return found

    yield world, result(SICK)  # nothing came in time
    yield world, result(SICK, troubles={sick: (StopCause.OUT_OF_RANGE, "offset out of range")})
    yield world, result(troubles={sick: (StopCause.OUT_OF_RANGE, "offset out of range")})  # behind what was read
    yield world, result(SICK, troubles={sick: (StopCause.CORRUPT, "bad CRC")})
    yield world, result(SICK, failed={SICK: "the transform raised"})
    yield world, result(SICK, unavailable={SICK: "disk full"})
    for at in range(starts_of(question)[sick], min(world.ends[sick], starts_of(question)[sick] + world.most)):
        if world.bad is None or at < world.bad:
            yield world, good_read(replace(world, unjudged=at), question)
    yield world, result(SICK, wider={SICK: "a column"})
    if world.bad is None and world.late is None and starts_of(question)[sick] == world.lake[sick] < world.ends[sick]:
        there = replace(world, bad=starts_of(question)[sick])
        yield there, good_read(there, question)


def events(world: World) -> Iterator[World]:
    """What may happen outside, at any moment."""
    if world.late is not None:
        after = world.commits(world.late)
        yield replace(after or world, late=None)
    sick = SICK_ONE
    if world.rivals and world.lake[sick] < world.range_of(sick, 0).end:
        yield replace(world, rivals=world.rivals - 1, lake={**world.lake, sick: world.lake[sick] + 1})


def progress(topic: str, partitions: int, *, uses_dataframe: bool = False) -> TopicProgress:
    """A topic at the beginning of its log."""
    owned = frozenset(range(partitions))
    empty = TopicProgress(topic, ID, uses_dataframe=uses_dataframe)
    return empty.owning(owned, TablePositions(dict.fromkeys(owned, 0)))
