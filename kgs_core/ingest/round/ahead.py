"""Reading ahead: the next batch is gathered and written while this one is committed. Pure.

Theory of operation. When a round commits, the question of the next one is known if every commit lands: the same topics,
from where the batches end. So it is asked then, once, beside the commits, and its answer is kept. The next round asks
by the positions that it has by then. Of each partition where these and all else that the question is made of are what
was foreseen, the kept answer is the answer. Where anything is not, it is dropped: the commit was refused or its outcome
is not known, the topic's table is late, the partition stopped or was let go. A topic's batch is one file, so it goes
whole where one of its partitions goes; a partition that has nothing in it takes nothing along.

So nothing changes for a round. Its batch was read from the positions that it has, its topic's id is asked for after
the reading and before the commit, and the commit is made on the condition that the table stands where the batch begins.
A dropped answer is a file that no log names, as after a kill; what Kafka said in it, it says again to whoever asks.
Two batches are in hand at most, since a round that does not commit reads nothing ahead.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from kgs_core.ingest.round.questions import AddColumns, Commit, ReadBatch, ReadResult
from kgs_core.ingest.round.state import Round
from kgs_core.model import TopicPartition


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """A round that is foreseen.

    Attributes:
        at: with the topics as they are once every open commit has landed.
        question: what it will ask the reader.
    """

    at: Round
    question: ReadBatch

    def answer(self, result: ReadResult, at: Round, question: ReadBatch, topics: Collection[str]) -> ReadResult | None:
        """What of `result`, the answer to the question that was foreseen, answers the one of `at`; None: nothing does.

        A partition that it leaves out is read by the next round.

        `topics`: those whose part may be taken.
        """
        if question.has_dataframe or question.planned is not None:
            return None
        foreseen = {tp for tp in self.question.start if tp.topic in topics}
        alike = {tp for tp in question.start.keys() & foreseen if _basis(at, tp) == _basis(self.at, tp)}
        # Dead letters of what is to be read were there before: another owner may have added to them since
        marks = {name: topic.at.dead_letter_marks for name, topic in at.topics.items()}
        alike -= {tp for tp in alike if (marks[tp.topic].get(tp.partition) or 0) > question.start[tp]}
        return result.of(alike, {tp.topic for tp in foreseen - alike}) if alike else None


def foresee(at: Round) -> ReadAhead | None:
    """What is read beside the commits that are open; None where nothing is.

    Topics with a job of their own are not read ahead: their ends are asked for first, and they take turns. Nor are
    those whose tables are just given columns: they would be read without them.
    """
    commits = [question for question in at.open.values() if isinstance(question, Commit)]
    if not commits or at.is_aside or any(topic.uses_dataframe for topic in at.topics.values()):
        return None
    wider = {question.topic for question in at.open.values() if isinstance(question, AddColumns)}
    topics = {name: topic for name, topic in at.topics.items() if name not in wider}
    for commit in commits:
        topics[commit.batch.topic] = topics[commit.batch.topic].advanced(commit.batch)
    following = replace(at, topics=topics)
    question = following.reading(None)
    return ReadAhead(following, question) if question.start else None


def _basis(at: Round, tp: TopicPartition) -> object:
    """All of a partition that a reading goes by."""
    topic, partition = at.topics[tp.topic], tp.partition
    return topic.topic_id, topic.active[partition], topic.at.of([partition])
