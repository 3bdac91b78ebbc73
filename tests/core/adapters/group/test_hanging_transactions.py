"""Which open transaction is known to hang, and what becomes of it; Kafka from memory."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kgs_core.adapters.group.hanging_transactions import HangingTransactions, why_not_hanging
from kgs_core.adapters.kafka import open_transactions
from kgs_core.adapters.kafka.open_transactions import CoordinatorView, OpenTransaction
from kgs_core.errors import PermanentError
from kgs_core.model import TopicPartition

TP = TopicPartition("kgs.g.consumer.metadata", 1)
OPEN = OpenTransaction(TP, producer_id=7, producer_epoch=3, coordinator_epoch=0, start=12)


@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_what_is_over_for_its_coordinator_and_open_in_a_partition_hangs(state):
    assert why_not_hanging(OPEN, CoordinatorView(state, 7, 4), "g-controller", is_own=False) == ""


@pytest.mark.parametrize(
    ("coordinator", "why"),
    [
        (None, "knows no transactional id g-controller"),
        (CoordinatorView("Empty", 8, 4), "none of g-controller, whose producer is 8"),
        (CoordinatorView("Ongoing", 7, 4), "may still end it, and says Ongoing"),
        (CoordinatorView("PrepareCommit", 7, 4), "may still end it, and says PrepareCommit"),
        (CoordinatorView("PrepareAbort", 7, 4), "may still end it, and says PrepareAbort"),
        (CoordinatorView("PrepareEpochFence", 7, 4), "may still end it, and says PrepareEpochFence"),
        (CoordinatorView("Dead", 7, 4), "may still end it, and says Dead"),
        (CoordinatorView("of a later Kafka", 7, 4), "may still end it"),
        (CoordinatorView("CompleteCommit", 7, 3), "as new as the controller's own"),
        (CoordinatorView("CompleteCommit", 7, 2), "as new as the controller's own"),
    ],
)
def test_what_may_still_end_or_is_not_ours_is_left_alone(coordinator, why):
    assert why in why_not_hanging(OPEN, coordinator, "g-controller", is_own=False)


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

    settings = SimpleNamespace(group="g", kafka=SimpleNamespace(bootstrap_servers="broker:1"))


@pytest.fixture
def end_in(monkeypatch):
    """`end_in` of one partition, where a commit is or is not proven by another one."""

    def ask(kafka, *, committed=False, written=None):
        monkeypatch.setattr(open_transactions, "OpenTransactions", kafka)
        monkeypatch.setattr(HangingTransactions, "_are_committed", lambda _, all_: dict.fromkeys(all_, committed))
        return HangingTransactions(Topics()).end_in([TP], written or {})

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


def test_what_an_older_version_has_written_is_left_to_a_person(end_in):
    kafka = Kafka()
    assert "nobody knows if it was committed: run `kafka-transactions.sh" in end_in(kafka, committed=None)
    assert kafka.ended == []


def test_without_the_right_one_line_says_what_hangs_and_what_a_person_can_do(end_in):
    why = end_in(Kafka(refusal=PermanentError("Kafka broker:1: end the transaction: CLUSTER_AUTHORIZATION_FAILED")))
    assert "producer 7 has a transaction open from offset 12 on" in why
    assert "CLUSTER_AUTHORIZATION_FAILED: give this user ClusterAction on the cluster, or run" in why
    assert "--bootstrap-server broker:1 abort --topic kgs.g.consumer.metadata --partition 1 --start-offset 12`" in why
    assert "\n" not in why


def test_no_abort_by_hand_is_offered_where_the_write_is_committed(end_in):
    why = end_in(Kafka(refusal=PermanentError("CLUSTER_AUTHORIZATION_FAILED")), committed=True)
    assert why.endswith("CLUSTER_AUTHORIZATION_FAILED: give this user ClusterAction on the cluster")


def test_without_a_leader_it_is_tried_again_later(monkeypatch):
    monkeypatch.setattr(open_transactions, "OpenTransactions", kafka := Kafka())
    monkeypatch.setattr(HangingTransactions, "_are_committed", lambda _, all_: dict.fromkeys(all_, False))
    assert HangingTransactions(Topics(leaders=())).end_in([TP]).endswith("the partition has no leader")
    assert kafka.ended == []


def test_a_transaction_that_has_ended_meanwhile_is_not_taken_for_one_that_was_cured(end_in):
    assert end_in(Kafka(found=[])) == "no transaction is open any more"
