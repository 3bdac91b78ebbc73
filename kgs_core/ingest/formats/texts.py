"""Values as texts."""

import pyarrow as pa

from kgs_core.ingest.formats.parsed import Parsed, ValueBatch

NOT_UTF8 = "not UTF-8"


def parse_text(batch: ValueBatch) -> Parsed:
    """Values in one column of texts, null for a record without a value. Values that are not UTF-8 are bad."""
    try:
        return Parsed(_column(batch.values, batch), range(len(batch.values)), {})
    except pa.ArrowInvalid:
        bad = {i: NOT_UTF8 for i, value in enumerate(batch.values.to_pylist()) if not is_text(value)}
    good = [i for i in range(len(batch.values)) if i not in bad]
    return Parsed(_column(batch.values.take(pa.array(good, pa.int64())), batch), good, bad)


def is_text(value: bytes | None) -> bool:
    """Whether these bytes are UTF-8, or None."""
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


def _column(values: pa.Array, batch: ValueBatch) -> pa.Table:
    return pa.Table.from_arrays([values.cast(pa.string())], schema=batch.columns)
