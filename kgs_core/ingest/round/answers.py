"""Effects of answers on a round; what it asks next is in `machine`. Pure."""

from dataclasses import replace

from kgs_core.errors import ProtocolError
from kgs_core.ingest.round import reasons
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
from kgs_core.ingest.round.state import Round, Stage
from kgs_core.ingest.round.stops import StopCause
from kgs_core.lake.rule.batch import TablePositions, TopicBatch
from kgs_core.model import TopicId, TopicPartition


def take(at: Round, question: Question, answer: Answer, now: float) -> Round:
    """The round with what the answer says.

    Raises:
        ProtocolError: it answers another kind of question.
    """
    match question, answer:
        case AskPositions(topic=topic), TablePositions() | Trouble():
            return _take_positions(at, topic, answer, now)
        case AskTopicIds(topics=topics), TopicIds() | Trouble():
            return _take_ids(at, topics, answer, now)
        case AskEnds(tps=tps), Ends() | Trouble():
            return _take_ends(at, tps, answer, now)
        case ReadBatch(), ReadResult():
            return _take_result(at, answer, now)
        case AskLogs(tps=tps), Logs() | Trouble():
            # Where nobody said what the log has, the stop that the partition has already keeps its words
            logs = {} if isinstance(answer, Trouble) else answer.logs
            return replace(at, logs={tp: log for tp in tps if isinstance(log := logs.get(tp), tuple)})
        case Commit() | AddColumns(), Landed() | Trouble():
            return _take_change(at, question, answer, now)
        case _:
            raise ProtocolError(f"{type(answer).__name__} is no answer to {type(question).__name__}")


def _take_positions(at: Round, topic: str, answer: TablePositions | Trouble, now: float) -> Round:
    state = at.topics[topic]
    if isinstance(answer, Trouble):
        return _look_failed(at, topic, answer, now)
    new = at.with_topic(state.owning(state.owned, answer))
    return _wait_where_nothing_landed(new, topic, now) if at.stage is Stage.RECOVER else new


def _wait_where_nothing_landed(at: Round, topic: str, now: float) -> Round:
    """A table that can be asked and does not take a commit (a full disk): each try would cost seconds and a file.

    Where another writer was ahead there is nothing to wait for.
    """
    if at.refused[topic] == reasons.AHEAD:
        return at
    positions = at.topics[topic].positions
    same = [p for b in at.batches if b.topic == topic for p, r in b.ranges.items() if positions.get(p) == r.start]
    return at.stopping(topic, dict.fromkeys(same, at.refused[topic]), StopCause.NO_ANSWER, now)


def _take_ids(at: Round, topics: tuple[str, ...], answer: TopicIds | Trouble, now: float) -> Round:
    new = at
    for topic in topics:
        found = answer if isinstance(answer, Trouble) else answer.ids.get(topic, Trouble(reasons.UNANSWERED))
        if isinstance(found, Trouble):
            new = _look_failed(new, topic, found, now)
            continue
        trouble = None if found == new.topics[topic].topic_id else other_topic(new.topics[topic], found)
        new = new.with_topic(replace(new.topics[topic], is_missing=found is None))
        new = replace(new, same=new.same | {topic}) if trouble is None else _look_failed(new, topic, trouble, now)
    return new


def other_topic(state: TopicProgress, found: TopicId | None) -> Trouble:
    """What it means that Kafka has another topic of this name, or none.

    That it has none is believed at the second look: a broker whose metadata lags says so, too.
    """
    if found is None and not state.is_missing:
        return Trouble(reasons.UNKNOWN_TOPIC)
    return Trouble(reasons.recreated(state.topic, [state.topic_id], found), StopCause.OTHER_TOPIC)


def _look_failed(at: Round, topic: str, trouble: Trouble, now: float) -> Round:
    """A topic that could not be asked for, or is not as it must be.

    No answer says nothing of the partitions that are being read: only what needed the answer waits.
    """
    state = at.topics[topic]
    if trouble.cause is not StopCause.NO_ANSWER or at.stage is Stage.RECOVER:
        concerned = state.owned
    elif at.stage is Stage.LOOK:
        concerned = state.due(now)
    else:
        concerned = frozenset(p for b in at.batches if b.topic == topic for p in b.ranges)
    stopped = state.stopped(dict.fromkeys(concerned, trouble.reason), trouble.cause, now)
    return replace(at.with_topic(stopped), looks=at.looks - {topic})


def _take_ends(at: Round, tps: tuple[TopicPartition, ...], answer: Ends | Trouble, now: float) -> Round:
    new = at
    for tp in tps:
        end = answer if isinstance(answer, Trouble) else answer.ends.get(tp, Trouble(reasons.NO_LEADER))
        if isinstance(end, Trouble):
            new = new.stopping(tp.topic, {tp.partition: end.reason}, end.cause, now)
        else:
            new = replace(new, ends={**new.ends, tp: end})
    return new


def _take_result(at: Round, result: ReadResult, now: float) -> Round:
    """What was read, and every complaint at once: what Kafka says once must not wait for a question about it."""
    new = replace(at, result=result, batches=tuple(b for b in result.batches if b.topic in at.topics))
    for tp, (cause, words) in result.troubles.items():
        new = new.stopping(tp.topic, {tp.partition: words}, cause, now)
    for topics, cause in ((result.failed, StopCause.TOPIC_FAILED), (result.unavailable, StopCause.NO_ANSWER)):
        for topic, reason in topics.items():
            # What stood still was not among it, and keeps its own reason
            read = new.topics[topic].active if topic in new.topics else ()
            new = new.stopping(topic, dict.fromkeys(read, reason), cause, now)
    return new


def _take_change(at: Round, question: Commit | AddColumns, answer: Landed | Trouble, now: float) -> Round:
    if isinstance(question, Commit):
        return _take_commit(at, question.batch, answer, now)
    # Nothing was committed, so only a failure needs a thought: what is read until it is mended would be read in vain
    if isinstance(answer, Landed):
        return at
    stops = dict.fromkeys(at.topics[question.topic].active, answer.reason)
    return at.stopping(question.topic, stops, answer.cause, now)


def _take_commit(at: Round, batch: TopicBatch, answer: Landed | Trouble, now: float) -> Round:
    if isinstance(answer, Landed) and answer.committed:
        return replace(at.with_topic(at.topics[batch.topic].advanced(batch)), landed=(*at.landed, batch))
    reason = answer.reason if isinstance(answer, Trouble) else reasons.AHEAD
    new = replace(at, refused={**at.refused, batch.topic: reason})
    if isinstance(answer, Trouble) and answer.cause is not StopCause.NO_ANSWER:
        return _look_failed(new, batch.topic, answer, now)
    return replace(new, unsure=new.unsure | {batch.topic})
