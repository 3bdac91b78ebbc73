"""A measurement as the JSON of one record of `monitor.writeSpeed`, in columns (`columns`), and back."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json

from kgs_core.errors import ProtocolError
from kgs_core.monitor.speeds import columns
from kgs_core.monitor.speeds.measurement import Measurement

MAX_BYTES = 32_000_000
"""Of one record, uncompressed: about 500,000 partitions."""


class _Versioned(BaseModel):
    """What is looked at first, so that an unknown version is called by that name."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    version: Annotated[int, Field(strict=True, ge=columns.VERSION, le=columns.VERSION)]


def encode(measurement: Measurement) -> bytes:
    """The record's value: a JSON object, every quantity under a name that ends in its unit."""
    return to_json(columns.columnar(measurement))


def decode(data: bytes) -> Measurement:
    """The measurement in a record's value.

    Raises:
        ProtocolError: too large, no JSON, a version that is not known, a field that is missing or out of its range.
    """
    if len(data) > MAX_BYTES:
        raise ProtocolError(f"measurement: {len(data)} bytes, more than {MAX_BYTES}: left out")
    try:
        _Versioned.model_validate_json(data)
        return columns.measurement_of(columns.ColumnarRecord.model_validate_json(data))
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the record"
        raise ProtocolError(f"measurement: {where}: {first['msg']}: left out") from e
