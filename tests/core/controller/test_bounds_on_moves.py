"""Windows of quiet, where they count: in what is planned and written."""

from dataclasses import replace

import pytest

from kgs_core.controller.target_selection import select_target
from kgs_core.planning.triggers import Reason
from tests.core.controller.two_readers import measured

NOW_S = 400.0
"""Later than a better packing is looked for; the clock says 01:30 UTC."""


class TestWindowsOfQuiet:
    @pytest.fixture
    def looked(self, synchronized, packing):
        """What is due by these windows and speeds, so many seconds after 01:30."""

        def build(windows, after_s=0.0, **speeds):
            settings = packing(forced_moves_only_utc=windows)
            state = synchronized(packing=settings)
            state = replace(state, wall_ms=(90 * 60 - NOW_S) * 1000.0, measured_at=NOW_S + after_s)
            return select_target(replace(state, measured=measured(**speeds)), NOW_S + after_s).target

        return build

    def test_outside_a_better_packing_is_looked_for(self, looked):
        for windows in ([], ["01:31-02:00"], ["00:00-01:30"]):
            assert looked(windows, a=30, b=20).reason == Reason.TIMEOUT

    def test_inside_it_is_not(self, looked):
        for windows in (["01:30-01:31"], ["00:00-00:10", "01:00-02:00"], ["23:00-02:00"]):
            assert looked(windows, a=30, b=20) is None

    def test_when_the_window_closes_it_is_looked_for_at_once(self, looked):
        assert looked(["01:30-01:31"], 59, a=30, b=20) is None
        assert looked(["01:30-01:31"], 60, a=30, b=20).reason == Reason.TIMEOUT

    def test_inside_what_is_forced_is_done(self, looked):
        target = looked(["01:00-02:00"], a=80, b=60, c=30)
        assert "partition without owner: c:0" in target.reason
