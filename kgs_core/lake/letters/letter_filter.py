"""Choice of dead letters: by the code of their error, the partition and the time of their records."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.errors import ConfigError
from kgs_core.lake.rule.error_codes import CODES, code_of
from kgs_core.system.moments import moment_of


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Which dead letters are meant; what is empty or None excludes none.

    Attributes:
        since: of their records' timestamps, the earliest; a record without a timestamp is not chosen then.
        until: likewise, the first that is not chosen.
    """

    codes: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    since: datetime | None = None
    until: datetime | None = None

    def chosen(self, letters: pa.Table) -> pa.Table:
        """Those of the letters that are meant."""
        keep = np.ones(letters.num_rows, np.bool_)
        if self.codes:
            errors = pc.cast(letters["error"], pa.string()).to_pylist()
            keep &= np.array([error is not None and code_of(error) in self.codes for error in errors], np.bool_)
        if self.partitions:
            keep &= np.isin(letters["_partition"].to_numpy(), sorted(self.partitions))
        for bound, compare in ((self.since, pc.greater_equal), (self.until, pc.less)):
            if bound is not None:
                times = letters["_timestamp"]
                keep &= pc.fill_null(compare(times, pa.scalar(bound, times.type)), fill_value=False).to_numpy()
        return letters.filter(pa.array(keep))


EVERY_LETTER = LetterFilter()


def letter_filter(
    codes: Collection[str] = (), partitions: Collection[int] = (), since: str | None = None, until: str | None = None
) -> LetterFilter:
    """The choice that these options name; times as people write them.

    Raises:
        ConfigError: there is no such code, or no such time.
    """
    if unknown := sorted(set(codes) - set(CODES)):
        raise ConfigError([f"--code: '{each}': no such code: use one of {', '.join(CODES)}" for each in unknown])
    return LetterFilter(
        frozenset(codes),
        frozenset(partitions),
        None if since is None else moment_of("--since", since),
        None if until is None else moment_of("--until", until),
    )
