"""Waiting for a broker that is away."""

import pytest

from kgs_core.errors import PermanentError, TransientError
from kgs_core.system.patience import LogOnChange, try_until
from kgs_core.system.shutdown import StopFlag


def failing(*errors, then="here"):
    left = list(errors)

    def attempt():
        if left:
            raise left.pop(0)
        return then

    return attempt


def test_what_fails_in_passing_is_tried_again_and_logged_once():
    logged = []
    away = [TransientError("no answer", 0.0)] * 3 + [TransientError("no leader", 0.0)]
    assert try_until(failing(*away), StopFlag(), logged.append) == "here"
    assert logged == ["waiting: no answer", "waiting: no leader"]


def test_a_refusal_ends_the_waiting():
    with pytest.raises(PermanentError, match="refused"):
        try_until(failing(TransientError("no answer", 0.0), PermanentError("refused")), StopFlag(), str)


def test_the_end_is_heeded_between_two_attempts():
    stop = StopFlag()
    assert try_until(failing(*[TransientError("no answer")] * 99), stop, lambda _: stop.set()) is None


def test_who_has_waited_for_long_enough_says_what_for():
    with pytest.raises(TransientError, match="not in 0 s: no answer"):
        try_until(failing(*[TransientError("no answer", 0.0)] * 99), StopFlag(), str, 0.1)


def test_that_all_is_well_is_not_said_and_makes_the_same_trouble_new():
    logged = []
    say = LogOnChange(logged.append, lambda: logged.append("well"))
    for text in ("", "no answer", "no answer", "", "", "no answer"):
        say(text)
    assert logged == ["no answer", "well", "no answer"]
