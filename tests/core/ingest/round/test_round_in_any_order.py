"""Long lives of a consumer: rounds, trouble, partitions given and taken away, deaths, in any order."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kgs_core.ingest.round.machine import begin
from kgs_core.ingest.round.progress import TopicProgress
from kgs_core.ingest.round.questions import Commit
from kgs_core.ingest.round.stops import StopCause
from kgs_core.model import TopicId, TopicPartition
from tests.core.ingest.round.round_consumer import Consumer
from tests.core.ingest.round.round_world import (
    PACE,
    SICK,
    SICK_ONE,
    WELL,
    World,
    events,
    every_answer,
    good_answer,
    progress,
)

PARTITIONS = 3
TPS = [TopicPartition(topic, p) for topic in (SICK, WELL) for p in range(PARTITIONS)]


class Life(RuleBasedStateMachine):
    """One consumer number through several processes."""

    def __init__(self) -> None:
        super().__init__()
        topics = {SICK: progress(SICK, PARTITIONS), WELL: progress(WELL, PARTITIONS, uses_dataframe=True)}
        world = World(dict.fromkeys(TPS, 3), dict.fromkeys(TPS, 0), rivals=5)
        self.here = Consumer(world, begin(topics, PACE, 0.0))

    @precondition(lambda self: self.here.at.open)
    @rule(data=st.data())
    def any_answer(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.here.at.open)))
        world, answer = data.draw(st.sampled_from(list(every_answer(self.here.world, self.here.at.open[number]))))
        self.here = self.here.given(number, world, answer)

    @precondition(lambda self: self.here.at.open)
    @rule()
    def tables_are_late(self) -> None:
        self.here = self.here.parted()

    @precondition(lambda self: any(aside.open for aside in self.here.asides))
    @rule(data=st.data())
    def any_late_answer(self, data: st.DataObject) -> None:
        aside = data.draw(st.sampled_from([aside for aside in self.here.asides if aside.open]))
        number = data.draw(st.sampled_from(sorted(aside.open)))
        world, answer = data.draw(st.sampled_from(list(every_answer(self.here.world, aside.open[number]))))
        self.here = self.here.given_late(aside, number, world, answer)

    @precondition(lambda self: self.here.at.open)
    @rule()
    def good_answers_to_the_end_of_the_round(self) -> None:
        while self.here.at.open:
            number, question = next(iter(self.here.at.open.items()))
            self.here = self.here.given(number, *good_answer(self.here.world, question))

    @precondition(lambda self: list(events(self.here.world)))
    @rule(data=st.data())
    def something_happens(self, data: st.DataObject) -> None:
        self.here = replace(self.here, world=data.draw(st.sampled_from(list(events(self.here.world)))))

    @rule(tp=st.sampled_from(TPS))
    def records_come(self, tp: TopicPartition) -> None:
        world = self.here.world
        self.here = replace(self.here, world=replace(world, ends={**world.ends, tp: world.ends[tp] + 1}))

    @precondition(lambda self: not self.here.at.open)
    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 60.0]))
    def next_round(self, seconds: float) -> None:
        self.here = self.here.next_round(seconds)

    @precondition(lambda self: not self.here.at.open)
    @rule(topic=st.sampled_from([SICK, WELL]), owned=st.frozensets(st.integers(0, PARTITIONS - 1)))
    def partitions_change_hands(self, topic: str, owned: frozenset[int]) -> None:
        if topic not in self.here.at.topics:  # its batch is in hand: that is waited for
            self.here = self.here.with_late_answers().next_round(0.0)
            self.good_answers_to_the_end_of_the_round()
        state = self.here.at.topics[topic]
        state = state.without(state.owned - owned)
        self.take_over(state.owning(owned, self.here.world.positions(topic, owned)))

    @rule()
    def dies_and_is_started_again(self) -> None:
        world = replace(self.here.world, bad=None)  # with a rule that takes the record
        for question in (q for aside in self.here.asides for q in aside.open.values()):
            if isinstance(question, Commit) and world.late is None:
                world = replace(world, late=question.batch)
        topics = {}
        for topic, state in self.here.topics.items():
            new = TopicProgress(topic, TopicId("id"), uses_dataframe=state.uses_dataframe)
            topics[topic] = new.owning(state.owned, world.positions(topic, state.owned))
        self.here = Consumer(world, begin(topics, PACE, self.here.now), self.here.now)

    def take_over(self, state: TopicProgress) -> None:
        topics = {**self.here.at.topics, state.topic: state}
        self.here = replace(self.here, at=replace(self.here.at, topics=topics))

    @invariant()
    def read_or_stopped_with_a_reason_and_a_look(self) -> None:
        for topic in self.here.topics.values():
            assert topic.owned == topic.active.keys() | topic.stops.keys()
            assert set(topic.tries) <= topic.owned
            for stop in topic.stops.values():
                assert stop.reason
                assert (stop.look_at is None) == (stop.cause is StopCause.BAD_RECORD)

    @invariant()
    def nothing_is_passed_over(self) -> None:
        for topic in self.here.topics.values():
            for p, position in topic.positions.items():
                assert position <= self.here.world.lake[TopicPartition(topic.topic, p)]

    @invariant()
    def no_trouble_comes_over_from_the_other_topic(self) -> None:
        assert not self.here.topics[WELL].stops

    def teardown(self) -> None:
        calm = self.here
        if calm.world.late is not None:
            calm = replace(calm, world=next(events(calm.world)))
        for _ in range(8):
            calm = calm.calm_round(400.0)
        for topic in calm.at.topics.values():
            for p in topic.owned:
                tp = TopicPartition(topic.topic, p)
                is_bad = tp == SICK_ONE and calm.world.bad == topic.positions[p]
                assert topic.positions[p] == calm.world.range_of(tp, 0).end or is_bad
                assert (p in topic.stops) == is_bad


Life.TestCase.settings = settings(max_examples=150, stateful_step_count=60)
TestLife = Life.TestCase
