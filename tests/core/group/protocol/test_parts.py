"""Parts of messages by themselves: a member's short form, and whose terms are met by whose."""

from dataclasses import replace

import pytest

from kgs_core.group.protocol import Incarnation, Member, Terms
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
