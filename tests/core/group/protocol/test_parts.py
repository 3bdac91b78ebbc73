"""Parts of messages by themselves: a member's short form, and whose terms are met by whose."""

from dataclasses import replace

import pytest

from kgs_core.group.protocol import Incarnation, Member, Terms
from kgs_core.group.protocol.parts import ClassOfTarget, of_target
from kgs_core.model import ConsumerId

TERMS = Terms("/lake", 10.0, ("ours", "wanted"), 4)


def test_a_member_is_shown_with_eight_letters_of_its_incarnation():
    assert str(Member(ConsumerId(3), Incarnation("1a2b3c4d5e6f"))) == "3@1a2b3c4d"


@pytest.mark.parametrize(
    ("other", "are_admitted"),
    [
        ({}, True),
        ({"config_hashes": ("ours",)}, True),
        ({"config_hashes": ()}, True),
        ({"config_hashes": ("other",)}, False),
        ({"config_hashes": ("ours", "wanted", "other")}, False),
        ({"lake_root": "/other"}, False),
        ({"suspect_after_s": 11.0}, False),
        ({"consumers_per_metadata_partition": 1}, False),
        ({"consumers_per_metadata_partition": None}, True),
    ],
)
def test_terms_admit_all_who_have_no_other_lake_patience_partition_or_configuration(other, are_admitted):
    assert TERMS.admit(replace(TERMS, **other)) == are_admitted


def test_terms_of_an_earlier_version_admit_whoever_has_a_partition():
    assert replace(TERMS, consumers_per_metadata_partition=None).admit(TERMS)


def test_classes_of_a_target_have_those_who_read_those_who_fail_and_the_last_capacity_of_who_has_nobody():
    found = of_target(
        {4: "big", 2: "big", 3: "small"}, {2: 20.0, 3: 3.0}.get, {"small": 9.0, "none": 7.0}, {1: "big", 8: "x"}
    )
    assert found == {
        "big": ClassOfTarget((1, 2, 4), 20.0),
        "none": ClassOfTarget((), 7.0),
        "small": ClassOfTarget((3,), 3.0),
    }
    assert [*found] == sorted(found)
