"""A consumer in the world of `round_world`: steps of its rounds, those of late tables, and what is read ahead."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kgs_core.ingest.round.ahead import ReadAhead
from kgs_core.ingest.round.machine import answered, begin, part
from kgs_core.ingest.round.progress import TopicProgress
from kgs_core.ingest.round.questions import Answer, ReadBatch, ReadResult, TopicIds
from kgs_core.ingest.round.state import Round
from tests.core.ingest.round.round_world import ID, PACE, SICK, World, good_answer


@dataclass(frozen=True)
class Consumer:
    """A consumer between or inside rounds, in its world.

    Attributes:
        at: the round in hand.
        now: seconds.
        distrusted: Kafka has not said, in this round, that `a` is the topic that its table was filled from.
        asides: rounds of topics whose tables are late.
        ahead: what was read beside commits, and its answer.
    """

    world: World
    at: Round
    now: float = 0.0
    distrusted: bool = False
    asides: tuple[Round, ...] = ()
    ahead: tuple[ReadAhead, ReadResult] | None = None

    @classmethod
    def starting(cls, topics: Mapping[str, TopicProgress], world: World) -> "Consumer":
        """At the beginning of its first round."""
        return cls(world, begin(topics, PACE, 0.0))

    @property
    def topics(self) -> dict[str, TopicProgress]:
        """All topics, also those that are late."""
        found = dict(self.at.topics)
        for aside in self.asides:
            assert not found.keys() & aside.topics.keys(), "a topic is in one round at a time"
            found |= aside.topics
        return found

    def next_round(self, after_s: float) -> "Consumer":
        """Once the round is over: with the topics whose tables have answered."""
        now = self.now + after_s
        late = tuple(aside for aside in self.asides if aside.open)
        free = {name: topic for name, topic in self.topics.items() if not any(name in aside.topics for aside in late)}
        return replace(self, at=begin(free, PACE, now), now=now, distrusted=False, asides=late)

    def parted(self) -> "Consumer":
        """Without those that have not answered."""
        at, asides = part(self.at, self.now)
        return replace(self, at=at, asides=(*self.asides, *asides))

    def given(self, number: int, world: World, answer: Answer) -> "Consumer":
        """With one question answered."""
        distrusted, at = self.distrusted, answered(self.at, number, answer, self.now)
        if isinstance(answer, TopicIds) and SICK in answer.ids:
            distrusted = answer.ids[SICK] != ID
        if isinstance(answer, ReadResult) and SICK in {*answer.failed, *answer.unavailable, *_topics(answer)}:
            # Said once: it must not be forgotten when what is asked about it goes wrong.
            assert 0 in at.topics[SICK].stops
        return replace(self, world=world, at=at, distrusted=distrusted)

    def reading_ahead(self, ahead: ReadAhead, world: World, result: ReadResult) -> "Consumer":
        """With the next batch read."""
        return replace(self, world=world, ahead=(ahead, result))

    def answered_ahead(self) -> "Consumer | None":
        """With the reading that is asked for answered by what was read ahead; None: it is not, and that is dropped."""
        ((number, question),) = [(n, q) for n, q in self.at.open.items() if isinstance(q, ReadBatch)] or [(0, None)]
        if self.ahead is None or question is None:
            return None
        ahead, result = self.ahead
        found, here = ahead.answer(result, self.at, question, ahead.at.topics), replace(self, ahead=None)
        if found is None:
            return here
        for batch in found.batches:
            positions = self.at.topics[batch.topic].positions
            assert all(positions[p] == r.start for p, r in batch.ranges.items()), "it was read from somewhere else"
        return here.given(number, self.world, found)

    def given_late(self, aside: Round, number: int, world: World, answer: Answer) -> "Consumer":
        """With one question answered to a topic that is late."""
        new = answered(aside, number, answer, self.now)
        return replace(self, world=world, asides=tuple(new if each is aside else each for each in self.asides))

    def with_late_answers(self) -> "Consumer":
        """With all tables that are late answering well."""
        here = self
        while open_ := [(aside, *item) for aside in here.asides for item in aside.open.items()]:
            aside, number, question = open_[0]
            here = here.given_late(aside, number, *good_answer(here.world, question))
        return here

    def calmed(self, after_s: float) -> "Consumer":
        """At the beginning of a round in which nothing is wrong any more, or in the one in hand."""
        here = self.with_late_answers()
        return here if here.at.open else here.next_round(after_s)

    def calm_round(self, after_s: float) -> "Consumer":
        """Through one round in which nothing is wrong any more."""
        here = self.calmed(after_s)
        while here.at.open:
            if (ready := here.answered_ahead()) is not None:
                here = ready
                continue
            number, question = next(iter(here.at.open.items()))
            here = here.given(number, *good_answer(here.world, question))
        return here

    def key(self) -> object:
        """Equal for consumers that go on alike: times count from now."""
        rounds = [_round_key(at, self.now) for at in (self.at, *self.asides)]
        ahead = self.ahead and (repr(self.ahead[0].question), _topics_key(self.ahead[0].at, 0.0), repr(self.ahead[1]))
        return (self.world.key(), self.distrusted, tuple(rounds), ahead)


def _round_key(at: Round, now: float) -> object:
    stage = (at.stage, at.same, tuple(sorted(at.logs.items())), at.unsure, at.looks)
    asked = tuple(repr(q) for q in at.open.values())
    return (_topics_key(at, now), stage, asked, repr(at.result), tuple(at.refused), len(at.landed))


def _topics_key(at: Round, now: float) -> object:
    return tuple(
        (
            t.topic,
            tuple(t.positions.items()),
            tuple(
                (p, s.cause, s.position, _left(s.look_at, now), s.tries, _left(s.trial_until, now))
                for p, s in sorted(t.stops.items())
            ),
            tuple(sorted(t.tries.items())),
            t.waiting_since is None,
            t.is_missing,
        )
        for t in at.topics.values()
    )


def _topics(result: ReadResult) -> set[str]:
    return {tp.topic for tp in result.troubles}


def _left(until: float | None, now: float) -> float | None:
    return None if until is None else until - now
