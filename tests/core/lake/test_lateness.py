"""How late rows came, against a plain loop over each partition's records in their order."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.lake.rule.completeness import Lateness
from kgs_core.lake.topics.lateness import late_by, lateness_of

ROW = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 50), st.integers(0, 1_000))


@given(st.lists(ROW, min_size=1, max_size=40, unique_by=lambda row: row[:3]))
def test_a_row_is_as_late_as_an_earlier_record_of_its_partition_has_a_later_time(rows):
    expected, latest = [], {}
    for topic, partition, _, stamp in sorted(rows):
        latest[topic, partition] = max(stamp, latest.get((topic, partition), stamp))
        expected.append(latest[topic, partition] - stamp)
    assert late_by(*(np.array(each, np.int64) for each in zip(*rows, strict=True))).tolist() == expected


def test_percentiles_are_of_all_files_and_a_table_without_rows_has_none():
    def part(first, stamps_ms):
        return pa.table(
            {
                "_topic_id": ["i"] * len(stamps_ms),
                "_partition": pa.array([0] * len(stamps_ms), pa.int32()),
                "_offset": [*range(first, first + len(stamps_ms))],
                "_timestamp": pa.array([ms * 1000 for ms in stamps_ms], pa.timestamp("us", tz="UTC")),
            }
        )

    files = {"late": part(3, [7_000]), "first": part(0, [5_000, 10_000, 9_500])}
    pinned = SimpleNamespace(newest_files=lambda _: [*files], read=lambda name, _: files[name])
    assert lateness_of(pinned) == Lateness(rows=4, since_ms=5_000, p50_s=0.5, p999_s=3.0, most_s=3.0)
    files.clear()
    assert lateness_of(pinned) is None
