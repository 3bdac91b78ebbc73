"""One round of a consumer, as a pure machine: questions go out, answers come in, positions and stops come of it.

Theory of operation. A round goes through five stages. Each opens its questions at once, and ends when every one of
them has an answer; "refused", "no answer" and "it raised" are answers too, so a round always ends.

1. LOOK: stopped partitions whose look is due: where does the table stand, which id has the topic? Ends of the topics
   that have a job of their own (dataframe).
2. READ: gather, transform and write what is active. Positions are the table's, so whatever is read twice is refused.
3. CHECK: is each topic that was read still the same id? What the log has, of partitions that the broker has nothing of.
4. COMMIT: every batch whose topic is the same. Only a landed commit moves a position. Where nothing was made of a
   topic, since its table lacks columns, they are added instead; the next round reads it again.
5. RECOVER: the table's positions, after a commit that did not land, or of which nobody knows whether it did.

A table that is slow to answer holds up no other topic: the round may be *parted* while only tables are asked (LOOK,
COMMIT, RECOVER). Each topic whose answer is missing becomes a round of its own, which goes on from there and reads
nothing; the rest goes on without it. As long as the topic's round is not over, no other round may have that topic, and
its batch is in hand: nobody may be told that its partitions are let go.

What holds, whatever is answered and in whatever order (the explorer in the tests tries all of it):
- A partition that is owned is read, or stopped with a reason and a next look (a bad record has none).
- A topic's trouble stops partitions of that topic only. Every question about several topics is answered for each.
- What Kafka says once (an offset out of range, a batch that fails its check) stops the partition before anything is
  asked about it, so it is not forgotten when the question fails.
- A question has a number. An answer to a question that is not open (late, given twice) changes nothing.
- After a commit of unknown outcome nothing is read before the table has been asked.
"""

from collections.abc import Mapping
from dataclasses import replace

from kgs_core.ingest.round import reasons
from kgs_core.ingest.round.answers import take
from kgs_core.ingest.round.batch_plan import PlannedRead, UnreadRecords, choose
from kgs_core.ingest.round.progress import TopicProgress
from kgs_core.ingest.round.questions import (
    AddColumns,
    Answer,
    AskEnds,
    AskLogs,
    AskPositions,
    AskTopicIds,
    Commit,
    Question,
    ReadResult,
    topic_of,
)
from kgs_core.ingest.round.state import Round, RoundLimits, Stage
from kgs_core.ingest.round.stops import LONGEST_LOOK_S, TRIAL_S, StopCause
from kgs_core.model import OffsetRange, TopicPartition
from kgs_core.ports.lake import Schema


def begin(topics: Mapping[str, TopicProgress], pace: RoundLimits, now: float) -> Round:
    """A round with its first questions open; `now` is on the consumer's steady clock, in seconds, here and below."""
    topics = {name: topic.trials_over(now) for name, topic in topics.items()}
    looks = [name for name, topic in topics.items() if topic.due(now)]
    ends = tuple(TopicPartition(t.topic, p) for t in topics.values() if t.uses_dataframe for p in t.active)
    asks: list[Question] = [AskPositions(name, topics[name].owned) for name in looks]
    asks += [AskTopicIds(tuple(looks))] if looks else []
    asks += [AskEnds(ends)] if ends else []
    return _ahead(Round(pace, topics, looks=frozenset(looks)).asking(asks), now)


def answered(at: Round, number: int, answer: Answer, now: float) -> Round:
    """The round after the answer to one question; unchanged where that is not open any more."""
    if number not in at.open:
        return at
    rest = replace(at, open={n: q for n, q in at.open.items() if n != number})
    return _ahead(take(rest, at.open[number], answer, now), now)


def part(at: Round, now: float) -> tuple[Round, tuple[Round, ...]]:
    """The round without the topics whose tables have not answered, and a round of its own for each of these.

    While Kafka or the reader is asked, nothing is parted.
    """
    slow = {topic for question in at.open.values() if (topic := topic_of(question)) is not None}
    if any(topic_of(question) is None for question in at.open.values()):
        return at, ()
    asides = []
    for topic in sorted(slow):
        stopped = {tp: why for tp, why in at.result.stopped.items() if tp.topic == topic}
        waiting = {tp: why for tp, why in at.result.waiting.items() if tp.topic == topic}
        # What the read has cost, and its problems, are the rest's to tell
        told = ReadResult(stopped=stopped, waiting=waiting)
        asides.append(replace(at.of({topic}), is_aside=True, result=told))
    return _ahead(at.of(at.topics.keys() - slow), now), tuple(asides)


def _ahead(at: Round, now: float) -> Round:
    """On to the next stage that asks something, once everything asked so far is answered."""
    new = at
    while not new.open and new.stage is not Stage.OVER:
        new = _next_stage(new, now)
    return new


def _next_stage(at: Round, now: float) -> Round:
    new = replace(at, stage=Stage(at.stage + 1))
    match new.stage:
        case Stage.READ if new.is_aside:
            return replace(_on_trial(new, now), stage=Stage.OVER)
        case Stage.READ:
            return _read(_on_trial(new, now), now)
        case Stage.CHECK:
            return _check(new)
        case Stage.COMMIT:
            wider = [AddColumns(topic, columns) for topic, columns in _wider(at).items() if topic in at.same]
            return _explain(new, now).asking([*(Commit(b) for b in at.batches if b.topic in at.same), *wider])
        case Stage.RECOVER:
            return new.asking([AskPositions(topic, new.topics[topic].owned) for topic in sorted(new.unsure)])
        case _:
            return _stop_at_records(new, now)


def _on_trial(at: Round, now: float) -> Round:
    new = at
    # What is read is worked on when it has waited for others, no sooner
    until = now + TRIAL_S + min(at.pace.wait_time_s, LONGEST_LOOK_S)
    for topic in at.looks:
        state = new.topics[topic]
        new = new.with_topic(state.on_trial(state.due(now), until))
    return new


def _read(at: Round, now: float) -> Round:
    new, planned = _plan(at, now)
    return new.asking([new.reading(planned)])


def _plan(at: Round, now: float) -> tuple[Round, PlannedRead | None]:
    """The dataframe topic whose turn it is: of partitions whose end is known."""
    new, waiting = at, []
    for state in at.topics.values():
        positions = {p: o for p, o in state.active.items() if TopicPartition(state.topic, p) in at.ends}
        if not state.uses_dataframe or not positions:
            continue
        ends = {p: at.ends[TopicPartition(state.topic, p)] for p in positions}
        found = UnreadRecords(state.topic, positions, ends, state.waiting_since or now, state.bytes_per_record)
        new = new.with_topic(replace(state, waiting_since=found.since if found.records else None))
        waiting.append(found)
    planned = choose(waiting, at.pace.batch_bytes, at.pace.wait_time_s, now)
    if planned is not None:
        state = new.topics[planned.topic]
        new = new.with_topic(replace(state, waiting_since=None))
        # Empty ranges for the other partitions, so that the client keeps them assigned.
        every = {p: planned.ranges.get(p, OffsetRange(o, o)) for p, o in state.active.items()}
        planned = PlannedRead(planned.topic, every)
    return new, planned


def _check(at: Round) -> Round:
    """Is each topic still the one it was when it was read; and what has the log of what is out of range?

    A dataframe topic's position may lie behind the end for readers of committed records while a transaction is
    open, and is lost only where it lies behind the log's own end.
    """
    troubles = at.result.troubles.items()
    lost = {tp for tp, (cause, _) in troubles if cause is StopCause.OUT_OF_RANGE and tp.topic in at.topics}
    behind = {tp for tp, end in at.ends.items() if at.topics[tp.topic].positions.get(tp.partition, 0) > end}
    topics = sorted({b.topic for b in at.batches} | _wider(at).keys() | {tp.topic for tp in lost | behind})
    asks: list[Question] = [AskTopicIds(tuple(topics))] if topics else []
    asks += [AskLogs(tuple(sorted(lost | behind)))] if lost | behind else []
    return replace(at, same=frozenset()).asking(asks)


def _wider(at: Round) -> dict[str, Schema]:
    return {topic: columns for topic, columns in at.result.wider.items() if topic in at.topics}


def _explain(at: Round, now: float) -> Round:
    """Say of what is out of range what the log has, where the topic is still the same."""
    new = at
    for tp, log in at.logs.items():
        state = new.topics[tp.topic]
        position = state.positions.get(tp.partition)
        if tp.topic not in at.same or position is None:
            continue
        words = _out_of_range(tp, position, log)
        if words is not None:
            new = new.stopping(tp.topic, {tp.partition: words}, StopCause.OUT_OF_RANGE, now)
    return new


def _stop_at_records(at: Round, now: float) -> Round:
    """At a bad record where `on_error: stop`, and at one that waits for a registry.

    Once everything before the record is in the table, and only then.
    """
    new = at
    of_result = (
        (at.result.stopped, StopCause.BAD_RECORD, "bad record: "),
        (at.result.waiting, StopCause.NO_ANSWER, ""),
    )
    for tps, cause, what in of_result:
        for tp, (offset, reason) in tps.items():
            state = new.topics.get(tp.topic)
            if state is not None and state.positions.get(tp.partition) == offset and tp.topic not in new.refused:
                new = new.stopping(tp.topic, {tp.partition: f"{what}{reason}"}, cause, now)
    return new


def _out_of_range(tp: TopicPartition, position: int, log: tuple[int, int]) -> str | None:
    first, end = log
    if position < first:
        return reasons.deleted(tp, position, first)
    return reasons.truncated(position, end) if position > end else None
