"""The threads beside the batch loop, with topics in memory."""

import queue
import subprocess
import sys
import threading
import time

import pytest

from kgs_core.errors import PermanentError, TransientError, UnsafeError
from kgs_core.group.membership.member import Identity, MembershipTiming
from kgs_core.group.membership.membership import Membership
from kgs_core.group.protocol import Ending, Incarnation, Member, MemberAssignment, Phase, Received, Report
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.runtime.membership_threads import AssignmentThread, ReportThread, SharedMembership, dead_thread
from kgs_core.system.shutdown import StopFlag
from tests.processes import a_process
from tests.waiting import wait_until

ME = Member(ConsumerId(1), Incarnation("me"))
A = TopicPartition("t", 0)


class MemoryReports:
    """A log that can be away, and says how often it was asked."""

    def __init__(self):
        self.log = []
        self.tries = 0
        self.away = threading.Event()

    def append(self, report, timeout_s):
        assert timeout_s == 15, "half of suspect_after_s"
        self.tries += 1
        if self.away.is_set():
            raise TransientError("away")
        self.log.append(report)

    @property
    def last(self):
        return self.log[-1] if self.log else None


class MemoryAssignments:
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


def shared(suspect_after_s=30, unheard_s=0.0):
    pace = MembershipTiming(0.05, suspect_after_s, 300)
    return SharedMembership(Membership.join(Identity(ME, a_process()), pace, time.monotonic() - unheard_s))


def ends(membership, *threads):
    membership.change(lambda m: m.end(time.monotonic()))
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive(), "it ends by itself once the last word is said"


@pytest.fixture
def parts():
    membership = shared()
    reports, assignments, stop = MemoryReports(), MemoryAssignments(), StopFlag()
    interrupted = threading.Event()
    threads = [AssignmentThread(membership, assignments, stop, interrupted.set), ReportThread(membership, reports)]
    for thread in threads:
        thread.start()
    yield membership, assignments, reports, stop, threads[0], interrupted
    reports.away.clear()
    ends(membership, *threads)
    assert reports.last.phase is Phase.ENDED


def give(assignments, offset, *owned):
    assignments.queue.put(Received(MemberAssignment(ME, frozenset(owned)), offset, 0))


def act(membership):
    membership.change(lambda m: m.acted(m.decision, time.monotonic()))


def test_assignment_reaches_the_loop_and_its_deed_the_log_while_a_batch_is_in_hand(parts):
    membership, assignments, reports, *_ = parts
    give(assignments, 3, A)
    assert membership.wait(lambda m: not m.is_acted_on, 10)
    act(membership)
    wait_until(lambda: [r for r in reports.log if isinstance(r, Report) and r.applied == 3], 10, "acknowledged")
    membership.change(lambda m: m.began(time.monotonic() - 5))
    give(assignments, 4)
    beats = len(reports.log)
    wait_until(lambda: len(reports.log) > beats + 5, 10, "heartbeats go on during the batch")
    assert reports.last.batch_age_s > 5
    assert all(r.owned == {A} for r in reports.log if isinstance(r, Report) and r.applied == 3)
    membership.change(Membership.rested)
    act(membership)
    wait_until(
        lambda: membership.now.last_report is not None and membership.now.last_report.applied == 4, 10, "acknowledged"
    )


def test_report_that_fails_is_made_anew_until_it_is_there(parts, caplog):
    membership, assignments, reports, *_ = parts
    wait_until(lambda: reports.last is not None, 10, "joined")
    reports.away.set()
    give(assignments, 3, A)
    assert membership.wait(lambda m: not m.is_acted_on, 10)
    act(membership)
    tries = reports.tries
    wait_until(lambda: reports.tries > tries + 3, 10, "tried again and again")
    reports.away.clear()
    wait_until(lambda: membership.now.last_report is not None and membership.now.last_report.applied == 3, 10, "there")
    sequences = [r.sequence for r in reports.log]
    assert sequences == sorted(sequences)
    warned = [r for r in caplog.records if r.levelname == "WARNING" and "cannot be appended" in r.getMessage()]
    assert len(warned) == 1


def test_assignments_that_cannot_be_read_for_a_while_end_nothing(parts):
    membership, assignments, *_ = parts
    assignments.queue.put(TransientError("away"))
    give(assignments, 3, A)
    assert membership.wait(lambda m: m.decision.owned == {A}, 10)


def test_assignments_that_are_lost_for_good_drain_the_process(parts):
    membership, assignments, _, _, thread, _ = parts
    assignments.queue.put(UnsafeError("made again"))
    assert membership.wait(lambda m: m.ending is Ending.FAILED, 10)
    assert (str(thread.failure), membership.now.why) == ("made again", "made again")


def test_any_other_error_of_the_thread_of_assignments_is_reported_and_drains_the_process(parts, caplog):
    """It used to end the thread in silence, and the consumer kept what it owned and heard no assignment for ever."""
    membership, assignments, reports, _, thread, interrupted = parts
    membership.change(lambda m: m.began(time.monotonic()))
    assignments.queue.put(RuntimeError("anything"))
    wait_until(lambda: reports.last and reports.last.phase is Phase.DRAINING, 10, "it says that it drains")
    words = "the thread of assignments has failed: RuntimeError: anything"
    assert (membership.now.why, str(thread.failure)) == (words, words)
    assert [r for r in reports.log if isinstance(r, Report)][-1].why == words
    assert "anything" in caplog.text
    assert interrupted.is_set(), "the batch in hand is not waited for"


def test_assignments_that_cannot_be_read_for_long_drain_a_process_that_is_heard():
    """As where the right to read them was taken away: it would keep what it is given, unread, for ever."""
    membership = shared(0.2)

    class Refused:
        def newest(self, _timeout_s):
            raise PermanentError("not authorized")

    class Heard:
        def append(self, report, timeout_s):
            pass

    assignments = AssignmentThread(membership, Refused(), StopFlag(), lambda: None)
    threads = [assignments, ReportThread(membership, Heard())]
    for thread in threads:
        thread.start()
    assert membership.wait(lambda m: m.ending is Ending.FAILED, 10)
    assert membership.now.why == "no assignment could be read for 0.6 s (3 x suspect_after_s): not authorized"
    assert isinstance(assignments.failure, PermanentError)
    ends(membership, *threads)


def test_error_of_the_thread_of_reports_is_reported_with_the_last_word(caplog):
    membership = shared()

    class FailsTwice(MemoryReports):
        def append(self, report, timeout_s):
            if self.tries < 2:
                self.tries += 1
                raise ValueError("cannot be written")
            super().append(report, timeout_s)

    writer = FailsTwice()
    thread = ReportThread(membership, writer)
    thread.start()
    assert membership.wait(lambda m: m.ending is Ending.FAILED, 10)
    ends(membership, thread)
    words = "the thread of reports has failed: ValueError: cannot be written"
    assert (writer.last.phase, writer.last.why, str(thread.failure)) == (Phase.ENDED, words, words)
    assert len([r for r in caplog.records if r.exc_info]) == 1, "said once, with its words"


class Dies(threading.Thread):
    def __init__(self, name):
        super().__init__(name=name, daemon=True)

    def run(self):
        return


def test_watchdog_is_told_of_a_thread_that_died_without_a_word(parts):
    membership, _, _, _, assignments, _ = parts
    reports = Dies("reports")
    assert dead_thread(membership, assignments, reports) is None, "not begun is not dead"
    reports.start()
    reports.join()
    assert dead_thread(membership, assignments, reports) == "the thread of reports has died"
    gone = Dies("assignments")
    gone.start()
    gone.join()
    assert dead_thread(membership, gone, assignments) == "the thread of assignments has died"
    membership.change(lambda m: m.failed("no assignments any more"))
    assert dead_thread(membership, gone, assignments) is None, "who is about to end hears nothing more"


def test_stop_signal_is_heard_during_a_batch(parts):
    membership, _, reports, stop, _, interrupted = parts
    membership.change(lambda m: m.began(time.monotonic()))
    stop.set()
    wait_until(lambda: reports.last and reports.last.phase is Phase.DRAINING, 10, "it says that it drains")
    assert interrupted.is_set()


def test_round_in_hand_is_interrupted_by_an_assignment_that_changes_something(parts):
    membership, assignments, *_, interrupted = parts
    give(assignments, 3, A)
    assert membership.wait(lambda m: not m.is_acted_on, 10)
    act(membership)
    assert not interrupted.is_set(), "between two rounds the loop looks by itself"
    membership.change(lambda m: m.began(time.monotonic()))
    assignments.queue.put(Received(MemberAssignment(Member(ME.consumer, Incarnation("older"))), 4, 0))
    give(assignments, 3, A)
    wait_until(assignments.queue.empty, 10, "heard")
    assert not interrupted.is_set()
    give(assignments, 5)
    assert interrupted.wait(10)


def test_clock_of_a_message_is_read_under_the_lock():
    """A round that begins while the sender waits for the lock must not look younger than nothing."""
    membership = shared()
    membership.change(lambda m: m.received([Received(MemberAssignment(ME, frozenset({A})), 0, 0)], 0))
    act(membership)
    told = []
    sender = threading.Thread(target=lambda: told.append(membership.next_message()))

    def begin_late(m):
        sender.start()
        time.sleep(0.2)  # the sender waits for the lock by now; where it does not yet, nothing is shown wrong
        return m.began(time.monotonic())

    began = membership.change(begin_late).busy_since
    sender.join(10)
    ((message, made_at),) = told
    assert made_at >= began
    assert message.batch_age_s == made_at - began


WATCHED = """
import sys, time
from kgs_core.system.watchdog import RoundLimit, limited, start_watchdog
from tests.processes import a_process
limit = RoundLimit({limit_s})
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
    ("limit_s", "touch", "hang", "why"),
    [
        (1.5, "limit.touch()", "pass", ""),
        (0.5, "pass", "pass", "batch older than batch_timeout_s=0.5"),
        (60, "limit.touch()", "time.sleep(60)", "the end takes longer than 0.3 s"),
    ],
    ids=["well", "stuck batch", "stuck end"],
)
def test_watchdog_ends_a_process_that_is_stuck_and_no_other(limit_s, touch, hang, why):
    """A machine that is busy elsewhere lets the process wait for a second, too."""
    program = WATCHED.format(limit_s=limit_s, touch=touch, hang=hang)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == (1 if why else 0)
    assert (f"{why}: ending this process" in done.stderr, why in done.stdout) == (bool(why), True)


def test_a_commit_as_kafka_comes_back_is_no_reason_to_end_where_a_report_follows():
    """Its records may come before the answer to a report, and whoever commits unheard ends."""
    membership = shared(unheard_s=200)
    commit = threading.Thread(target=membership.landed)
    commit.start()
    wait_until(lambda: membership._changed._waiters, 10, "the commit waits to be noted")
    assert membership.now.fence_reason(time.monotonic()) is None
    report, made_at = membership.next_message()
    membership.change(lambda m: m.appended(report, made_at))
    commit.join(10)
    assert membership.now.landed_at > made_at
    assert membership.now.fence_reason(time.monotonic()) is None


def test_who_commits_and_is_not_heard_ends():
    membership = shared(suspect_after_s=0.05, unheard_s=1.0)
    membership.landed()
    assert "no report could be appended" in membership.now.fence_reason(membership.now.landed_at)
