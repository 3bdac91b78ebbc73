"""When a batch may be committed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.lake.rule.commit_rule import CommitDecision, judge
from kgs_core.lake.rule.positions import AppIds, ParsedAppId, epoch_at, epoch_stamp, parse_app_id
from kgs_core.model import TopicId

VERSIONS = st.none() | st.integers(0, 5)
STORED = st.dictionaries(st.sampled_from("abc"), VERSIONS)


@pytest.mark.parametrize(
    ("stored", "retry", "verdict"),
    [
        ({"a": 3, "b": None}, False, CommitDecision.COMMIT),
        ({"a": 3, "b": None}, True, CommitDecision.COMMIT),
        ({"a": 5, "b": 2}, True, CommitDecision.LANDED),
        ({"a": 5, "b": 2}, False, CommitDecision.REFUSED),
        ({"a": 5, "b": None}, True, CommitDecision.REFUSED),
        ({"a": 4, "b": None}, True, CommitDecision.REFUSED),
        ({"a": 3, "b": 0}, False, CommitDecision.REFUSED),
        ({}, False, CommitDecision.REFUSED),
    ],
)
def test_batch_is_judged_by_all_of_its_partitions(stored, retry, verdict):
    assert judge(stored, {"a": 3, "b": None}, {"a": 5, "b": 2}, retry=retry) is verdict


@given(STORED, st.dictionaries(st.sampled_from("abc"), VERSIONS, min_size=1), st.booleans())
def test_commit_means_that_every_expected_version_is_stored(stored, expected, retry):
    new = {app: (version or 0) + 1 for app, version in expected.items()}
    verdict = judge(stored, expected, new, retry=retry)
    assert (verdict is CommitDecision.COMMIT) == all(stored.get(app) == v for app, v in expected.items())
    if verdict is CommitDecision.LANDED:
        assert retry
        assert new.items() <= stored.items()


NAMES = st.from_regex(r"[a-zA-Z0-9._-]{1,30}", fullmatch=True)


@given(NAMES, NAMES, NAMES, st.integers(0, 10_000), st.integers(0, 2**63 - 1))
def test_application_ids_can_be_taken_apart(group, topic, topic_id, partition, offset):
    ids = AppIds(group, topic, TopicId(topic_id))
    parts = (group, topic, topic_id, partition)
    assert parse_app_id(ids.position(partition)) == ParsedAppId(*parts, is_start=False, gap_from=None)
    assert parse_app_id(ids.start(partition)) == ParsedAppId(*parts, is_start=True, gap_from=None)
    assert parse_app_id(ids.epoch(partition)) == ParsedAppId(*parts, is_start=False, gap_from=None, is_epoch=True)
    assert parse_app_id(ids.gap(partition, offset)) == ParsedAppId(*parts, is_start=False, gap_from=offset)


POSITIONS = st.integers(0, 2**63 - 1)


@given(st.integers(0, 2**31 - 1), POSITIONS, POSITIONS)
def test_epoch_is_known_at_its_own_position_only(epoch, position, other):
    stamp = epoch_stamp(epoch, position)
    assert 0 <= stamp < 2**63
    assert epoch_at(stamp, position) == epoch
    assert epoch_at(stamp, other) == (epoch if (position - other) % 2**31 == 0 else None)
    assert epoch_at(None, position) is None


@pytest.mark.parametrize(
    "text", ["", "kgs-probe", "g/t/0", "g/t@i", "g/t@i/x", "g/t@i/0/gap/", "g/t@i/0/end", "a/g/t@i/0"]
)
def test_other_writers_ids_are_not_ours(text):
    assert parse_app_id(text) is None
