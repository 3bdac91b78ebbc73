"""Ids of writes: what a committed record proves of another write."""

from types import SimpleNamespace

import pytest

from kgs_core.group.topics.write_id import WriteId, WriteIds, write_id_of


def id_in(headers):
    return write_id_of(SimpleNamespace(headers=lambda: headers))


def written(ids):
    return id_in(ids.next_headers())


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
    assert id_in(headers) is None


def test_a_number_stands_beside_its_series():
    headers = [("a", b"b"), ("kgs.write", b"12345678" + bytes([0, 0, 1, 2]))]
    assert id_in(headers) == WriteId(b"12345678", 258)
