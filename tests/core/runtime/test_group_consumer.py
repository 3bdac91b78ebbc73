"""How a member of the group ends: what its last report says of it, with topics in memory and no Spark."""

import threading
from typing import ClassVar

import pytest

from kgs_core.errors import TransientError
from kgs_core.group.protocol import Ending, Phase, Report
from kgs_core.model import ConsumerId
from kgs_core.runtime import group_consumer
from kgs_core.runtime.group_consumer import GroupConsumer
from kgs_core.system.shutdown import StopFlag
from kgs_core.system.watchdog import SparkWatch
from tests.configuration import settings_of
from tests.processes import a_process

PROCESS = a_process()
SPARK = SparkWatch(lambda: False).reason


class Queue:
    def __init__(self, *_):
        self.is_open = True

    def newest(self, timeout_s):
        threading.Event().wait(min(timeout_s, 0.05))
        return []

    def close(self):
        self.is_open = False


class Writer:
    log: ClassVar[list] = []

    def __init__(self, *_):
        type(self).log = []

    def append(self, report, _timeout_s):
        self.log.append(report)

    def close(self):
        pass


@pytest.fixture
def consumer(tmp_path, monkeypatch):
    """With `joins(stop)`, which has it join with topics in memory."""
    watched = []
    monkeypatch.setattr(group_consumer, "start_watchdog", lambda *arguments: watched.append(arguments))
    told = []
    hosting = group_consumer.Hosting(last_word=told.append)
    found = GroupConsumer(settings_of(lake={"root": str(tmp_path)}), ConsumerId(1), hosting=hosting)
    found.watched, found.told = watched, told
    found.joins = lambda stop=None: found.joined(PROCESS, (Queue(), Writer()), stop or StopFlag(), lambda: None, SPARK)
    return found


def last():
    return [report for report in Writer.log if isinstance(report, Report)][-1]


def test_last_report_says_by_which_error_the_loop_ended(consumer):
    """It said `ended` like one that was asked to: no back-off followed, and the number was never quarantined."""
    with pytest.raises(TransientError, match="5 rounds"), consumer.joins():
        raise TransientError("consumer 1: 5 rounds failed, last: boom")
    assert (last().phase, last().ending) == (Phase.ENDED, Ending.FAILED)
    assert last().why == "consumer 1: 5 rounds failed, last: boom"


def test_exit_in_a_users_code_is_a_failure_with_its_words(consumer):
    """`sys.exit` in a transform ended the consumer as if it had been asked to: no reason, no back-off."""
    with pytest.raises(SystemExit), consumer.joins():
        raise SystemExit("no licence")
    assert (last().ending, last().why) == (Ending.FAILED, "SystemExit: no licence")


def test_last_report_of_one_that_was_asked_to_end_says_so(consumer):
    stop = StopFlag()
    with consumer.joins(stop) as membership:
        stop.set()
        assert membership.wait(lambda m: m.ending is not None, 10)
    assert (last().phase, last().ending, last().why) == (Phase.ENDED, Ending.ASKED, "")


def test_error_of_a_thread_ends_the_process_with_its_words(consumer, monkeypatch):
    monkeypatch.setattr(Queue, "newest", lambda *_: 1 / 0)
    with (
        pytest.raises(TransientError, match="thread of assignments has failed: ZeroDivisionError"),
        consumer.joins() as membership,
    ):
        assert membership.wait(lambda m: m.ending is not None, 10)
    assert "ZeroDivisionError" in last().why


def test_what_the_watchdog_ends_says_why_and_still_owns_what_it_may_commit(consumer):
    """A commit may be under way until the very end: so it drains, and has not ended."""
    with consumer.joins() as membership:
        ((reason, _, last_word),) = consumer.watched
        assert reason(0.0) is None
        last_word("batch older than batch_timeout_s=300")
        assert membership.now.last_report.phase is Phase.DRAINING
        assert membership.now.last_report.why == "batch older than batch_timeout_s=300"
        assert consumer.told == ["batch older than batch_timeout_s=300"]
