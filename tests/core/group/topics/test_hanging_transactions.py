"""Which open transaction is known to hang, and what becomes of it; Kafka from memory."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from confluent_kafka.cimpl import Message
from kafka.errors import ClusterAuthorizationFailedError, InvalidProducerEpochError

from kgs_core.errors import PermanentError, TransientError
from kgs_core.group.topics.hanging_transactions import HangingTransactions, why_not_hanging
from kgs_core.group.topics.topic_reader import KafkaGroupTopicReader
from kgs_core.group.topics.write_id import WriteIds
from kgs_core.kafka import open_transactions
from kgs_core.kafka.open_transactions import CoordinatorView, OpenTransaction
from kgs_core.model import TopicPartition

TP0, TP, TP2 = (TopicPartition("kgs.g.consumer.metadata", number) for number in range(3))
OPEN = OpenTransaction(TP, producer_id=7, producer_epoch=3, coordinator_epoch=0, start=12)


@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_what_is_over_for_its_coordinator_and_open_in_a_partition_hangs(state):
    assert why_not_hanging(OPEN, CoordinatorView(state, 7, 4), "g-controller", is_own=False) == ""


@pytest.mark.parametrize(
    ("coordinator", "why"),
    [
        (None, "knows no transactional id g-controller"),
        (CoordinatorView("Empty", 8, 4), "it does not belong to g-controller, whose producer is 8"),
        (CoordinatorView("Ongoing", 7, 4), "may still end it, and says Ongoing"),
        (CoordinatorView("PrepareCommit", 7, 4), "may still end it, and says PrepareCommit"),
        (CoordinatorView("PrepareAbort", 7, 4), "may still end it, and says PrepareAbort"),
        (CoordinatorView("PrepareEpochFence", 7, 4), "may still end it, and says PrepareEpochFence"),
        (CoordinatorView("Dead", 7, 4), "may still end it, and says Dead"),
        (CoordinatorView("of a later Kafka", 7, 4), "may still end it"),
        (CoordinatorView("CompleteCommit", 7, 3), "as new as the controller's own"),
        (CoordinatorView("CompleteCommit", 7, 2), "does not know it yet, and is at epoch 2"),
    ],
)
def test_what_may_still_end_or_is_not_ours_is_left_alone(coordinator, why):
    assert why in why_not_hanging(OPEN, coordinator, "g-controller", is_own=False)


def test_an_answer_older_than_the_transaction_is_no_word_on_it_though_it_is_our_own():
    """From a broker that is the coordinator no more, and does not know that yet."""
    assert "does not know it yet" in why_not_hanging(OPEN, CoordinatorView("Empty", 7, 2), "g-controller", is_own=True)


class Kafka:
    """What `OpenTransactions` answers: one open transaction, a coordinator that has forgotten it."""

    def __init__(self, found=(OPEN,), refusal=None):
        self.found, self.refusal, self.ended = list(found), refusal, []

    def __call__(self, _settings):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def found_in(self, tps):
        return [each for each in self.found if each.tp in tps]

    def coordinator_of(self, transactional_id):
        assert transactional_id == "g-controller"
        return CoordinatorView("Empty", 7, 4)

    def end(self, found, leader, *, commit):
        if self.refusal is not None:
            raise self.refusal
        self.ended.append((found, leader, commit))


class Topics:
    """The group's topics."""

    def __init__(self, leaders=((1, 5),)):
        self.admin, self.leaders = self, dict(leaders)

    def describe(self, topics):
        return dict.fromkeys(topics, self)

    def partitions(self, _topic):
        return (TP0, TP, TP2)

    def offsets_at(self, tps, _ms):
        return dict.fromkeys(tps, 0)

    settings = SimpleNamespace(group="g", kafka=SimpleNamespace(bootstrap_servers="broker:1"))


@pytest.fixture
def end_in(monkeypatch):
    """`end_in` of one partition, where a commit is or is not proven by another one."""

    def ask(kafka, *, committed=False, written=None, leaders=((1, 5),)):
        monkeypatch.setattr(open_transactions, "OpenTransactions", kafka)
        monkeypatch.setattr(
            HangingTransactions, "_outcomes", lambda _self, _kafka, all_: dict.fromkeys(all_, committed)
        )
        return HangingTransactions(Topics(leaders)).end_in([TP], written or {})

    return ask


@pytest.mark.parametrize("committed", [True, False])
def test_it_is_ended_as_the_rest_of_its_write_was(end_in, committed):
    kafka = Kafka()
    assert end_in(kafka, committed=committed) == ""
    assert kafka.ended == [(OPEN, 5, committed)]


def test_what_this_controller_has_committed_itself_is_committed_though_nobody_has_fenced_it(end_in):
    own = replace(OPEN, producer_epoch=4)
    assert end_in(kafka := Kafka(found=[own]), written={TP: own.start}) == ""
    assert kafka.ended == [(own, 5, True)]
    assert "as new as" in end_in(kafka := Kafka(found=[own]), written={TP: own.start - 1})
    assert kafka.ended == []


def records(start, headers_of_each):
    """In a partition, from offset `start` on."""
    return [
        Message(offset=offset, headers=headers, timestamp=(2, 1_700_000_000_000))
        for offset, headers in enumerate(headers_of_each, start)
    ]


@pytest.fixture
def end_by_proof(monkeypatch):
    """`end_in` of one partition: of `opened` from offset 12 on there, and `committed`, in others."""

    def ask(kafka, opened, committed, start=OPEN.start):
        def read(_self, starts, isolation):
            if isolation == "read_committed":
                assert starts.keys() == {TP0, TP, TP2}
                return [(TP0, record) for record in records(0, committed)]
            assert starts == {TP: OPEN.start}
            return [(TP, record) for record in records(start, opened)]

        monkeypatch.setattr(open_transactions, "OpenTransactions", kafka)
        monkeypatch.setattr(HangingTransactions, "_read", read)
        return HangingTransactions(Topics()).end_in([TP])

    return ask


FIRST, SECOND, THIRD = (ids.next_headers() for ids in [WriteIds()] for _ in range(3))
LATER_SERIES = WriteIds().next_headers()


@pytest.mark.parametrize(
    ("opened", "committed", "commit"),
    [
        ([FIRST, FIRST], [FIRST], True),
        ([FIRST], [SECOND], True),
        ([FIRST, None], [FIRST], True),
        ([SECOND], [FIRST], False),
        ([FIRST], [LATER_SERIES, None], False),
        ([FIRST, SECOND], [THIRD], True),
        # Its first write was committed elsewhere. The next one, in the same open transaction here, was not: a marker of
        # a commit would give out an Assignment that no controller has ever decided
        ([FIRST, SECOND], [FIRST], False),
        ([FIRST, LATER_SERIES], [SECOND], False),
    ],
)
def test_it_is_committed_where_every_write_in_it_is_proven(end_by_proof, opened, committed, commit):
    assert end_by_proof(kafka := Kafka(), opened, committed) == ""
    assert kafka.ended == [(OPEN, 5, commit)]


FOREIGN = OpenTransaction(TP2, producer_id=99, producer_epoch=0, coordinator_epoch=0, start=3)


def test_no_proof_is_no_word_where_it_may_stand_behind_somebody_elses_open_transaction(end_by_proof):
    kafka = Kafka(found=[OPEN, FOREIGN])
    why = end_by_proof(kafka, [FIRST], [])
    assert why.endswith(
        f"may be hidden behind another transaction: {TP2}: producer 99 has a transaction open from offset 3 on"
    )
    assert kafka.ended == []
    assert end_by_proof(kafka, [FIRST], [FIRST]) == ""
    assert kafka.ended == [(OPEN, 5, True)]


def test_an_own_open_transaction_elsewhere_hides_nothing_that_is_committed(end_by_proof):
    """Else two partitions of one write would wait for each other."""
    kafka = Kafka(found=[OPEN, replace(OPEN, tp=TP2)])
    assert end_by_proof(kafka, [FIRST], []) == ""
    assert kafka.ended == [(OPEN, 5, False)]


def test_a_transaction_whose_first_record_is_gone_has_ended_meanwhile(end_by_proof):
    with pytest.raises(TransientError, match="no open record at offset 12"):
        end_by_proof(kafka := Kafka(), [FIRST], [FIRST], start=13)
    with pytest.raises(TransientError, match="no open record at offset 12"):
        end_by_proof(kafka, [], [FIRST])
    assert kafka.ended == []


def test_what_an_older_version_has_written_is_left_to_a_person(end_by_proof):
    why = end_by_proof(kafka := Kafka(), [None, FIRST], [FIRST])
    assert "it is unknown whether it was committed: run `kafka-transactions.sh" in why
    assert kafka.ended == []


def refused(cause):
    """As `OpenTransactions.end` says it."""
    error = PermanentError(f"Kafka broker:1: end the transaction: {cause.message}")
    error.__cause__ = cause()
    return error


def test_without_the_right_one_line_says_what_hangs_and_what_a_person_can_do(end_in):
    why = end_in(Kafka(refusal=refused(ClusterAuthorizationFailedError)))
    assert "producer 7 has a transaction open from offset 12 on" in why
    assert "CLUSTER_AUTHORIZATION_FAILED: give this user ClusterAction on the cluster, or run" in why
    assert "--bootstrap-server broker:1 abort --topic kgs.g.consumer.metadata --partition 1 --start-offset 12`" in why
    assert "\n" not in why


def test_no_abort_by_hand_is_offered_where_the_write_is_committed(end_in):
    why = end_in(Kafka(refusal=refused(ClusterAuthorizationFailedError)), committed=True)
    assert why.endswith("CLUSTER_AUTHORIZATION_FAILED: give this user ClusterAction on the cluster")


def test_no_right_and_no_abort_by_hand_is_advised_where_somebody_newer_has_written_there(end_in):
    why = end_in(Kafka(refusal=refused(InvalidProducerEpochError)))
    assert why.endswith("given it up: Kafka broker:1: end the transaction: INVALID_PRODUCER_EPOCH")


def test_without_a_leader_it_is_tried_again_later(end_in):
    assert end_in(kafka := Kafka(), leaders=()).endswith("the partition has no leader")
    assert kafka.ended == []


def test_a_transaction_that_has_ended_meanwhile_is_not_taken_for_one_that_was_cured(end_in):
    assert end_in(Kafka(found=[])) == "no transaction is open any more"


def test_what_stays_unread_of_our_own_is_said_once(caplog):
    """It is tried again every 30 s, for days where the right is missing."""
    topics = SimpleNamespace(written={TP: (12, float("-inf"))})
    whys = ["no right", "no right", "", "no right", "no leader"]
    reader = KafkaGroupTopicReader(topics, hanging=SimpleNamespace(end_in=lambda *_: whys.pop(0)))
    reader._reader = SimpleNamespace(positions={TP: 5})
    while whys:
        topics.written[TP] = 12, float("-inf")
        reader._end_own()
    said = [record.getMessage().rpartition(": ")[2] for record in caplog.records]
    assert said == ["no right", "no right", "no leader"]
