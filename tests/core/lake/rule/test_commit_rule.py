"""When a batch may be committed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.lake.rule.commit_rule import CommitDecision, judge
from kgs_core.lake.rule.positions import AppIds, ParsedAppId, epoch_at, epoch_stamp, parse_app_id
from kgs_core.model import TopicId

VERSIONS = st.none() | st.integers(0, 5)
STORED = st.dictionaries(st.sampled_from("abc"), VERSIONS)


@given(STORED, st.dictionaries(st.sampled_from("abc"), VERSIONS, min_size=1), st.booleans())
def test_batch_is_judged_by_all_of_its_partitions(stored, expected, retry):
    """It fits where every expected version is stored; after a first try, it has landed where every new one is."""
    new = {app: (version or 0) + 1 for app, version in expected.items()}
    wanted = CommitDecision.LANDED if retry and new.items() <= stored.items() else CommitDecision.REFUSED
    if all(stored.get(app) == version for app, version in expected.items()):
        wanted = CommitDecision.COMMIT
    assert judge(stored, expected, new, retry=retry) is wanted


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
