"""Dead letters chosen by their offsets, as no command does."""

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from kgs_core.lake.letters.letter_filter import LetterFilter


@dataclass(frozen=True)
class Chosen(LetterFilter):
    """Letters of these offsets alone; of all, where none are named."""

    offsets: Collection[int] = ()

    def chosen(self, letters):
        found = LetterFilter.chosen(self, letters)
        keep = [not self.offsets or offset in self.offsets for offset in found["_offset"].to_pylist()]
        return found.filter(pa.array(keep, pa.bool_()))
