"""Ids of writes: what a committed record proves of another write."""

import pytest

from kgs_core.group.topics.write_id import WriteId, WriteIds, write_id_of


class Record:
    """With headers."""

    def __init__(self, headers):
        self._headers = headers

    def headers(self):
        return self._headers


def written(ids):
    return write_id_of(Record(ids.next_headers()))


def test_a_write_is_proven_by_itself_and_by_what_was_begun_when_it_was_known_to_be_committed():
    ids = WriteIds()
    first, second = written(ids), written(ids)
    assert first.is_proven_by(first)
    assert first.is_proven_by(second)
    assert not second.is_proven_by(first)


def test_what_was_written_after_a_failure_proves_nothing_of_what_came_before():
    ids = WriteIds()
    failed = written(ids)
    ids.begin_series()
    assert not failed.is_proven_by(written(ids))
    assert not failed.is_proven_by(None)


@pytest.mark.parametrize(
    "headers", [None, [], [("kgs.write", b"short")], [("kgs.write", None)], [("other", bytes(12))]]
)
def test_what_an_older_version_or_somebody_else_wrote_has_none(headers):
    assert write_id_of(Record(headers)) is None


def test_a_number_stands_beside_its_series():
    assert write_id_of(Record([("a", b"b"), ("kgs.write", b"12345678" + bytes([0, 0, 1, 2]))])) == WriteId(
        b"12345678", 258
    )
