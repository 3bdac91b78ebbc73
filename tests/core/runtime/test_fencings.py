"""How often the right to write was taken, by the epochs that a coordinator tells."""

import logging

import pytest

from kgs_core.errors import PermanentError, TransientError
from kgs_core.kafka import open_transactions
from kgs_core.kafka.open_transactions import CoordinatorView
from kgs_core.runtime.fencings import Fencings
from tests.configuration import settings_of


def at(epoch, producer=7):
    return CoordinatorView("Empty", producer, epoch)


@pytest.mark.parametrize(
    ("answers", "count"),
    [
        ((), None),
        ((None,), 0),
        ((None, at(0)), 0),
        ((at(41),), 0),
        ((at(41), at(41), at(44)), 3),
        ((at(41), None, at(42)), 1),
        ((at(32766), at(0, producer=8), at(1, producer=8)), 2),
    ],
)
def test_epochs_are_counted_from_the_first_answer_on(answers, count):
    fencings = Fencings(settings_of())
    for answer in answers:
        fencings.take(answer)
    assert fencings.count == count


def test_what_is_not_answered_is_not_counted_and_a_refusal_is_told_once(monkeypatch, caplog):
    caplog.set_level(logging.WARNING, "kgs_core")
    outcomes = [PermanentError("no right"), PermanentError("no right"), at(5), TransientError("away"), at(6)]
    outcomes.append(PermanentError("no right any more"))
    made = []

    class Asked:
        def __init__(self, settings):
            made.append(settings)

        def __exit__(self, *_):
            pass

        def coordinator_of(self, transactional_id):
            assert transactional_id == "g-controller"
            outcome = outcomes.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

    monkeypatch.setattr(open_transactions, "OpenTransactions", Asked)
    fencings = Fencings(settings_of())
    fencings.look()
    fencings.look()
    assert fencings.count is None
    fencings.look()
    with pytest.raises(TransientError):
        fencings.look()
    fencings.look()
    fencings.look()
    assert fencings.count == 1
    assert [record.getMessage() for record in caplog.records] == [
        "kgs_controller_fenced_total: not given out: no right",
        "kgs_controller_fenced_total: not given out: no right any more",
    ]
    assert len(made) == 4  # anew after each that was no answer
