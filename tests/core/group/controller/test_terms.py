"""What the Target says that everybody in the group must have, and what is said to who has something else."""

from dataclasses import replace

import pytest

from kgs_core.config.settings import config_hash
from kgs_core.group.controller.terms import other_terms, terms_of
from kgs_core.group.protocol import DesiredVersion, Ending, Phase, Target, Terms
from tests.configuration import settings_of
from tests.core.group.controller.two_readers import (
    ONE,
    TARGET,
    TWO,
    acts,
    group,
    look,
    measured,
    received,
    report,
    the_write,
)

OURS = Terms("/lake", 10.0, ("ours",), 1)
SAID = replace(TARGET, terms=OURS)
WANTED = DesiredVersion("", "wanted", "somebody", 1)
SETTINGS = settings_of()


@pytest.fixture
def written(synchronized):
    """Targets that a controller with these terms writes, where this one stands in a group in order."""

    def build(target, *more, terms=OURS, age_s=0.0) -> list[Target]:
        state = synchronized((received(target, 1), *group()[1:], *more), terms=terms)
        return [act.target for act in acts(look(state, measured(age_s, a=80, b=60))[1]) if getattr(act, "target", None)]

    return build


def test_a_new_target_says_them(synchronized):
    write = the_write(look(synchronized(terms=OURS), measured(a=80, b=60, c=30)))
    assert write.target.terms == OURS


@pytest.mark.parametrize(
    "other",
    [
        {"lake_root": "/other"},
        {"suspect_after_s": 11.0},
        {"config_hashes": ("other",)},
        {"consumers_per_metadata_partition": 4},
    ],
)
def test_a_controller_that_has_others_says_so_at_once_and_moves_nothing(written, other):
    """Else whoever joins with its settings would be refused until something else changes the Target."""
    (target,) = written(SAID, terms=replace(OURS, **other))
    assert target.terms == replace(OURS, **other)
    assert (target.assignment, target.rscore) == (TARGET.assignment, 0.0)
    assert target.reason == "who may join has changed: another configuration"


def test_the_same_terms_change_nothing(written):
    assert written(SAID) == []
    assert written(replace(SAID, terms=replace(OURS, config_hashes=("earlier", "ours")))) == []
    assert written(replace(SAID, terms=replace(OURS, consumers_per_metadata_partition=None))) == []


def test_the_wanted_configuration_may_join_with_the_first_replacement(written):
    (target,) = written(SAID, received(WANTED))
    assert "one more for a while" in target.reason
    assert target.terms.config_hashes == ("ours", "wanted")


def test_the_wanted_configuration_may_join_where_all_have_ended_and_nothing_can_be_packed(written):
    """They are started again with the file as it is now, and nothing else may change the Target for long."""
    over = [received(replace(report(m, sequence=9, phase=Phase.ENDED), ending=Ending.FAILED), 9) for m in (ONE, TWO)]
    (target,) = written(SAID, received(WANTED), *over, age_s=1e6)
    assert target.reason == "who may join has changed: another configuration"
    assert target.terms.config_hashes == ("ours", "wanted")
    assert target.assignment == TARGET.assignment
    assert target.fulfilled_ms == received(WANTED).timestamp_ms
    assert written(target, received(WANTED), *over, age_s=1e6) == []


def test_a_target_of_an_earlier_version_is_left_alone(written):
    assert written(TARGET) == []


def test_terms_of_settings_are_the_settings_own():
    ours = terms_of(SETTINGS)
    assert ours == Terms("/lake", SETTINGS.membership.suspect_after_s, (config_hash(SETTINGS),), 1)
    assert other_terms(SETTINGS, ours) == []
    assert other_terms(SETTINGS, replace(ours, config_hashes=("of-a-replacement", *ours.config_hashes))) == []
    earlier = replace(ours, config_hashes=(), consumers_per_metadata_partition=None)
    assert other_terms(SETTINGS, earlier) == [], "an earlier version says none"


def test_a_group_of_0_1_whose_consumers_listen_elsewhere_is_not_joined():
    """It joined, listened in another partition, and its partitions were not read."""
    theirs = replace(terms_of(SETTINGS), consumers_per_metadata_partition=16)
    (only,) = other_terms(SETTINGS, theirs)
    assert only.startswith("a controller of version 0.1 with consumers_per_metadata_partition 16, so it would not find")
    assert only.endswith("start again with this version")
    assert len(other_terms(SETTINGS, replace(theirs, lake_root="/other"))) == 2


def test_all_that_differs_is_reported_with_the_way_out():
    ours = terms_of(SETTINGS)
    lake, limit = other_terms(SETTINGS, Terms("/theirs", 77.0, ("other",)))
    assert lake.startswith("lake.root /theirs, this configuration says /lake: ")
    assert limit.startswith(f"membership.suspect_after_s 77, this configuration says {ours.suspect_after_s:g}: ")
    assert lake.endswith("or restart `kgs control` with this one, then `kgs replace`")
    (only,) = other_terms(SETTINGS, replace(ours, config_hashes=("0123456789abcdef",)))
    assert only == (
        f"configuration 01234567, this is {ours.config_hashes[0][:8]}: "
        "start it with the group's configuration, or bring this one in with `kgs replace`"
    )
