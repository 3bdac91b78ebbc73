"""Runs of places are the places."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.lake.files import ended_rows
from kgs_core.lake.files.places import PartitionKey, is_within


@given(st.lists(st.sets(st.integers(0, 40), min_size=1), min_size=1, max_size=4))
def test_runs_of_several_decisions_cover_all_of_their_places(decisions):
    runs = ended_rows._joined([ended_rows._runs_of(np.array(sorted(each))) for each in decisions])
    every = sorted(set().union(*decisions))
    assert ended_rows._offsets(*runs).tolist() == every
    assert (runs[0][1:] > runs[1][:-1] + 1).all()
    offsets = list(range(45))
    rows = pa.table({"_topic_id": ["a"] * 45, "_partition": pa.repeat(0, 45), "_offset": offsets})
    found = is_within(rows, {PartitionKey("a", 0): runs})
    assert np.flatnonzero(found).tolist() == every
    assert not is_within(rows, {PartitionKey("a", 1): runs}).any()
