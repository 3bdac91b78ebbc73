"""The threads beside the batch loop, with mailboxes in memory."""

import queue
import subprocess
import sys
import threading
import time

import pytest

from kgs_core.adapters.report_thread import OrderThread, ReportThread, SharedMembership
from kgs_core.adapters.stop_flag import StopFlag
from kgs_core.consumer.member import Ending, Identity, Pace
from kgs_core.consumer.membership import Membership
from kgs_core.errors import TransientError, UnsafeError
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.protocol import Incarnation, Member, Order, Phase, Process, Received, Report
from tests.waiting import wait_until

ME = Member(ConsumerId(1), Incarnation("me"))
A = TopicPartition("t", 0)


class MemoryReports:
    """A log that can be away, and says how often it was asked."""

    def __init__(self):
        self.log = []
        self.tries = 0
        self.away = threading.Event()

    def send(self, report, timeout_s):
        assert timeout_s == 10, "a third of suspect_after_s"
        self.tries += 1
        if self.away.is_set():
            raise TransientError("away")
        self.log.append(report)

    @property
    def last(self):
        return self.log[-1] if self.log else None


class MemoryOrders:
    """A queue; an exception in it is raised once."""

    def __init__(self):
        self.queue = queue.Queue()

    def newest(self, timeout_s):
        try:
            found = self.queue.get(timeout=timeout_s)
        except queue.Empty:
            return []
        if isinstance(found, Exception):
            raise found
        return [found]


@pytest.fixture
def parts():
    membership = SharedMembership(
        Membership.join(Identity(ME, Process("h", "b", 1, 1)), Pace(0.05, 30, 300), time.monotonic())
    )
    reports, orders, stop = MemoryReports(), MemoryOrders(), StopFlag()
    hurried = threading.Event()
    threads = [OrderThread(membership, orders, stop, hurried.set), ReportThread(membership, reports)]
    for thread in threads:
        thread.start()
    yield membership, orders, reports, stop, threads[0], hurried
    reports.away.clear()
    membership.change(lambda m: m.end(time.monotonic()))
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive(), "it ends by itself once the last word is said"
    assert reports.last.phase is Phase.ENDED


def give(orders, offset, *owned):
    orders.queue.put(Received(Order(ME, frozenset(owned)), offset, 0))


def act(membership):
    membership.change(lambda m: m.acted(m.decision, time.monotonic()))


def test_order_reaches_the_loop_and_its_deed_the_log_while_a_batch_is_in_hand(parts):
    membership, orders, reports, *_ = parts
    give(orders, 3, A)
    assert membership.wait(lambda m: not m.is_acted_on, 10)
    act(membership)
    wait_until(lambda: [r for r in reports.log if isinstance(r, Report) and r.applied == 3], 10, "acknowledged")
    membership.change(lambda m: m.began(time.monotonic() - 5))
    give(orders, 4)
    beats = len(reports.log)
    wait_until(lambda: len(reports.log) > beats + 5, 10, "heartbeats go on during the batch")
    assert reports.last.batch_age_s > 5
    assert all(r.owned == {A} for r in reports.log if isinstance(r, Report) and r.applied == 3)
    membership.change(Membership.rested)
    act(membership)
    wait_until(lambda: membership.now.said is not None and membership.now.said.applied == 4, 10, "acknowledged")


def test_report_that_fails_is_made_anew_until_it_is_there(parts, caplog):
    membership, orders, reports, *_ = parts
    wait_until(lambda: reports.last is not None, 10, "joined")
    reports.away.set()
    give(orders, 3, A)
    assert membership.wait(lambda m: not m.is_acted_on, 10)
    act(membership)
    tries = reports.tries
    wait_until(lambda: reports.tries > tries + 3, 10, "tried again and again")
    reports.away.clear()
    wait_until(lambda: membership.now.said is not None and membership.now.said.applied == 3, 10, "there")
    sequences = [r.sequence for r in reports.log]
    assert sequences == sorted(sequences)
    assert len([r for r in caplog.records if "cannot be appended" in r.getMessage()]) == 1


def test_orders_that_cannot_be_read_for_a_while_end_nothing(parts):
    membership, orders, *_ = parts
    orders.queue.put(TransientError("away"))
    give(orders, 3, A)
    assert membership.wait(lambda m: m.decision.owned == {A}, 10)


def test_orders_that_are_lost_for_good_drain_the_process(parts):
    membership, orders, _, _, thread, _ = parts
    orders.queue.put(UnsafeError("made again"))
    assert membership.wait(lambda m: m.ending is Ending.ASKED, 10)
    assert str(thread.failure) == "made again"


def test_stop_signal_is_heard_during_a_batch(parts):
    membership, _, reports, stop, _, hurried = parts
    membership.change(lambda m: m.began(time.monotonic()))
    stop.set()
    wait_until(lambda: reports.last and reports.last.phase is Phase.DRAINING, 10, "it says that it drains")
    assert hurried.is_set()


def test_round_in_hand_is_hurried_by_an_order_that_changes_something(parts):
    membership, orders, *_, hurried = parts
    give(orders, 3, A)
    assert membership.wait(lambda m: not m.is_acted_on, 10)
    act(membership)
    assert not hurried.is_set(), "between two rounds the loop looks by itself"
    membership.change(lambda m: m.began(time.monotonic()))
    orders.queue.put(Received(Order(Member(ME.consumer, Incarnation("older"))), 4, 0))
    give(orders, 3, A)
    wait_until(orders.queue.empty, 10, "heard")
    assert not hurried.is_set()
    give(orders, 5)
    assert hurried.wait(10)


WATCHED = """
import sys, time
from kgs_core.adapters.watchdog import RoundLimit, limited, start_watchdog
limit = RoundLimit(0.5)
def tell(why):
    print("told", why, flush=True)
start_watchdog(limit.reason, 0.5, tell)
end = time.monotonic() + 2
while time.monotonic() < end:
    {touch}
    time.sleep(0.02)
with limited("the end", 0.3, tell):
    {hang}
"""


@pytest.mark.parametrize(
    ("touch", "hang", "why"),
    [
        ("limit.touch()", "pass", ""),
        ("pass", "pass", "batch older than batch_timeout_s=0.5"),
        ("limit.touch()", "time.sleep(60)", "the end takes longer than 0.3 s"),
    ],
    ids=["well", "stuck batch", "stuck end"],
)
def test_watchdog_ends_a_process_that_is_stuck_and_no_other(touch, hang, why):
    program = WATCHED.format(touch=touch, hang=hang)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == (1 if why else 0)
    assert (f"{why}: ending this process" in done.stderr, why in done.stdout) == (bool(why), True)
