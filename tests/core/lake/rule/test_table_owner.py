"""Whose a table is, and how it changes hands: by what stands in its log alone."""

from kgs_core.lake.rule.positions import CLOSED, AppIds
from kgs_core.lake.rule.table_owner import (
    REDRIVES,
    STARTS,
    OwnershipTransfer,
    close_life,
    hand_over,
    open_lives,
    owners,
)
from kgs_core.model import TopicId

OLD, NEW = AppIds("old", "t", TopicId("i")), AppIds("new", "t", TopicId("i"))
OTHER = AppIds("other", "u", TopicId("j"))
STORED = {
    OLD.position(0): 7,
    OLD.start(0): 2,
    OLD.epoch(0): 99,
    OLD.gap(0, 3): 5,
    OLD.position(11): 0,
    OTHER.position(0): 4,
    STARTS: 3,
    "kgs-probe": 1,
}
"""Two positions of one group, with all that it notes beside them; one of another; what is nobody's."""


def test_who_has_an_open_position_fills_the_table():
    assert owners(STORED) == {"old": ("t",), "other": ("u",)}
    two_topics = {OLD.position(0): 1, AppIds("old", "a", TopicId("k")).position(2): 0}
    assert owners(two_topics) == {"old": ("a", "t")}


def test_a_start_is_no_position_and_a_closed_position_is_nobodys():
    assert owners({OLD.start(0): 2, OLD.epoch(0): 1, OLD.end(0): 7, OLD.gap(0, 3): 5, STARTS: 1}) == {}
    assert owners({OLD.position(0): CLOSED, NEW.position(0): 7}) == {"new": ("t",)}


class TestHandOver:
    def test_all_that_a_group_has_moves_and_nothing_of_others(self):
        theirs = {NEW.position(0): 7, NEW.start(0): 2, NEW.epoch(0): 99, NEW.gap(0, 3): 5, NEW.position(11): 0}
        ours = {app: STORED[app] for app in (*map(OLD.position, (0, 11)), OLD.start(0), OLD.epoch(0), OLD.gap(0, 3))}
        assert hand_over(STORED, "old", "new") == OwnershipTransfer(
            expected=ours | dict.fromkeys([*theirs, OLD.route(0), OLD.route(11)]) | {STARTS: 3, REDRIVES: None},
            new=theirs | {OLD.position(0): CLOSED, OLD.position(11): CLOSED, STARTS: 4, REDRIVES: 1},
            positions=2,
        )

    def test_afterwards_the_table_is_the_new_groups_and_there_is_nothing_to_move(self):
        after = STORED | hand_over(STORED, "old", "new").new
        assert owners(after) == {"new": ("t",), "other": ("u",)}
        assert hand_over(after, "old", "new") is None

    def test_what_was_redriven_moves_with_its_table(self):
        stored = STORED | {OLD.redriven(0): 4, OLD.redriven_sum(0): 9, REDRIVES: 2}
        found = hand_over(stored, "old", "new")
        assert (found.new[NEW.redriven(0)], found.new[NEW.redriven_sum(0)], found.new[REDRIVES]) == (4, 9, 3)

    def test_what_the_new_group_had_before_must_still_be_there(self):
        """It had the table once, and gave it back."""
        stored = STORED | {NEW.position(0): CLOSED, NEW.start(0): 2}
        found = hand_over(stored, "old", "new")
        assert (found.expected[NEW.position(0)], found.expected[NEW.start(0)]) == (CLOSED, 2)
        assert (found.new[NEW.position(0)], found.expected[NEW.epoch(0)]) == (7, None)

    def test_what_moved_before_stays_as_the_new_group_has_it(self):
        """A change of hands that was ended after this table; then the old group began partition 1."""
        before = STORED | hand_over(STORED, "old", "new").new
        after = before | hand_over(before | {OLD.position(1): 6}, "old", "new").new
        assert [after[NEW.position(p)] for p in (0, 1, 11)] == [7, 6, 0]
        assert [after[OLD.position(p)] for p in (0, 1, 11)] == [CLOSED] * 3

    def test_a_life_that_has_ended_is_closed_for_the_heir(self):
        found = hand_over(STORED | {OLD.position(1): CLOSED, OLD.end(1): 4}, "old", "new")
        assert (found.new[NEW.position(1)], found.new[NEW.end(1)], found.positions) == (CLOSED, 4, 2)

    def test_a_group_without_positions_has_nothing_to_hand_over(self):
        assert hand_over(STORED, "nobody", "new") is None
        assert hand_over({OLD.start(0): 2}, "old", "new") is None


def test_lives_that_may_still_move_are_those_of_this_group_and_topic():
    second = AppIds("old", "t", TopicId("second"))
    stored = STORED | {second.position(1): 8, second.position(2): CLOSED, NEW.position(0): 7}
    assert open_lives(stored, "old", "t") == {"i": {0: 7, 11: 0}, "second": {1: 8}}
    assert open_lives(stored, "old", "u") == {}


class TestCloseLife:
    def test_it_ends_where_it_stands(self):
        assert close_life(STORED, OLD, {0: 7, 5: None}) == (
            {OLD.position(0): 7, OLD.position(5): None},
            {OLD.position(0): CLOSED, OLD.end(0): 7, OLD.position(5): CLOSED},
        )

    def test_what_is_closed_is_left_alone(self):
        closed = {OLD.position(0): CLOSED, OLD.end(0): 7}
        assert close_life(closed, OLD, {0: 7}) == ({}, {})
        assert OLD.end(0) == "old/t@i/0/end"
