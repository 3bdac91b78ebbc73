"""Unread times from acknowledgements and advances, against a loop over every moment."""

import json

from hypothesis import given
from hypothesis import strategies as st

from bench.unread import Acknowledged, Advance, commits_of, longest_gaps

END = 30
TIMES = st.lists(st.integers(0, END), max_size=8).map(sorted)


@given(TIMES, st.lists(st.tuples(st.integers(0, END), st.integers(1, 8)), max_size=6), st.integers(0, END))
def test_the_longest_gap_is_the_longest_run_of_moments_with_unread_records(acked, reads, from_s):
    records = [Acknowledged(offset, at, b"") for offset, at in enumerate(acked)]
    advances = [Advance(at, position) for at, position in reads]
    longest, open_since = 0, None
    for now in range(END + 1):
        read_before = max([0, *(position for at, position in reads if at < now)])
        has_advanced = any(at == now and position > read_before for at, position in reads)
        was_unread = any(at < now for at in acked[read_before:])
        if was_unread and (has_advanced or now == END) and now >= from_s:
            longest = max(longest, now - open_since)
        read = max(read_before, *(position for at, position in reads if at == now), 0) if reads else 0
        is_unread = any(at <= now for at in acked[read:])
        open_since = None if not is_unread else now if has_advanced or open_since is None else open_since
    assert longest_gaps({0: records}, {0: advances}, from_s, END)[0].seconds == longest


def test_a_gap_ends_when_it_ends():
    records = [Acknowledged(0, 1.0, b""), Acknowledged(1, 2.0, b"")]
    assert longest_gaps({0: records}, {0: [Advance(5.0, 2)]}, 0.0, 9.0)[0] == (4.0, 5.0)
    assert longest_gaps({0: records, 1: []}, {0: []}, 0.0, 9.0) == {0: (8.0, 9.0), 1: (0.0, 0.0)}


def test_a_tables_log_tells_positions(tmp_path):
    log = tmp_path / "_delta_log"
    log.mkdir()
    actions = [
        {"commitInfo": {"timestamp": 1500}},
        {"txn": {"appId": "group/topic@id/3", "version": 7}},
        {"txn": {"appId": "group/owner", "version": 9}},
    ]
    (log / "00000000000000000000.json").write_text("\n".join(map(json.dumps, actions)))
    assert commits_of(tmp_path) == {3: [Advance(1.5, 7)]}
