"""Dead letters chosen by their offsets, as no command does, and those that the rule of today would take."""

from collections.abc import Collection
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pytest

from kgs_core.ingest.worker import process_batch
from kgs_core.lake.letters.letter_filter import LetterFilter


@dataclass(frozen=True)
class Chosen(LetterFilter):
    """Letters of these offsets alone; of all, where none are named."""

    offsets: Collection[int] = ()

    def chosen(self, letters):
        found = LetterFilter.chosen(self, letters)
        keep = [not self.offsets or offset in self.offsets for offset in found["_offset"].to_pylist()]
        return found.filter(pa.array(keep, pa.bool_()))


@contextmanager
def rule_of_then(refuses, why):
    """Records are parsed by a rule that could not take yet what the rule of today takes: `refuses`, by the offset."""
    parse = process_batch.parse_records

    def parsed(job, records):
        found = parse(job, records)
        offsets = records.offsets.tolist()
        late = {i: why for i in found.good if refuses(offsets[i])}
        keep = pa.array([n for n, i in enumerate(found.good) if i not in late], pa.int64())
        return type(found)(found.table.take(keep), [found.good[n] for n in keep.to_pylist()], {**found.bad, **late})

    with pytest.MonkeyPatch.context() as then:
        then.setattr(process_batch, "parse_records", parsed)
        yield
