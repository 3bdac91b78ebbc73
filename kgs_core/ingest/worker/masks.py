"""A rule's mask at work: hashes, beginnings and nulls in place of values, before anything is written of a record.

What of a record lies beside its columns is kept back, too: its bytes in a dead letter, and the words of an error, which
may quote it. A field that has another type than its mask can take (a registry's, of later) becomes null. Debezium's
word for a value that was not sent stays: the former value does.
"""

import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.config import TableSpec
from kgs_core.config.rule.masking import HASH, NULL, mask_path, truncated_to
from kgs_core.config.rule.newest_rows import UNAVAILABLE
from kgs_core.config.secret_files import LEAST_SECRET
from kgs_core.errors import ConfigError
from kgs_core.lake.rule.error_codes import code_of
from kgs_core.system.secret_files import with_secrets

_DIGEST = "sha256"
_NO_VALUE = UNAVAILABLE.encode()
_LONG_BYTES = 8
UNTOLD = "not told, since the rule masks fields"


@dataclass(frozen=True, slots=True)
class Masks:
    """The masks of a rule; one without fields masks nothing. Picklable.

    Attributes:
        fields: path of each -> `HASH`, `NULL`, or how many characters stay.
    """

    fields: tuple[tuple[tuple[str, ...], str | int], ...] = ()
    secret: bytes = field(default=b"", repr=False)

    @property
    def token(self) -> int | None:
        """Number by which a table knows the secret, from 0 to 2^63 - 1; None: nothing is hashed."""
        if all(how != HASH for _, how in self.fields):
            return None
        return int.from_bytes(hmac.digest(self.secret, b"kgs mask_secret", _DIGEST)[:_LONG_BYTES]) >> 1

    def masked(self, rows: pa.Table) -> pa.Table:
        """The rows, of the same types; columns that they do not have are passed over."""
        for (name, *rest), how in self.fields:
            at = rows.schema.get_field_index(name)
            if at >= 0:
                column = rows.column(at).combine_chunks()
                column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
                rows = rows.set_column(at, rows.schema.field(at), _masked(column, rest, how, self.secret))
        return rows

    def values(self, values: pa.Array) -> pa.Array:
        """Records' values in dead letters: where fields are masked, nothing of each; null tells of a tombstone."""
        if not self.fields:
            return values
        return pc.if_else(values.is_valid(), pa.scalar(b"", values.type), pa.scalar(None, values.type))

    def reasons(self, bad: Mapping[int, str], columns: Collection[str]) -> Mapping[int, str]:
        """Why records are bad; where fields are masked, each one's code and column, without a word of the record."""
        return {i: _withheld(reason, columns) for i, reason in bad.items()} if self.fields else bad


def masks_of(spec: TableSpec) -> Masks:
    """Masks of a topic's rule. A secret's file is read once in a process.

    Raises:
        PermanentError: the file cannot be read, or holds no secret.
    """
    if not spec.rule.mask:
        return Masks()
    fields = tuple((mask_path(path), truncated_to(how) or how) for path, how in spec.rule.mask.items())
    return Masks(fields, _secret(spec.mask_secret) if spec.mask_secret is not None else b"")


@cache
def _secret(given: str) -> bytes:
    found = str(with_secrets("lake", {"mask_secret": given})["mask_secret"])
    if len(found) < LEAST_SECRET:
        raise ConfigError([f"lake.mask_secret: shorter than {LEAST_SECRET} characters: take `openssl rand -hex 32`"])
    return found.encode()


def _withheld(reason: str, columns: Collection[str]) -> str:
    place = next((f"column {name}: " for name in columns if reason.startswith(f"column {name}: ")), "")
    return f"[{code_of(reason)}] {place}{UNTOLD}"


def _masked(found: pa.Array, path: list[str], how: str | int, secret: bytes) -> pa.Array:
    kind = found.type
    if pa.types.is_list(kind) and (path or how != NULL):
        first, last = found.offsets[0].as_py(), found.offsets[-1].as_py()
        starts = pa.array(found.offsets.to_numpy() - first, pa.int32())
        items = _masked(found.values[first:last], path, how, secret)
        return pa.ListArray.from_arrays(starts, items, type=kind, mask=found.is_null() if found.null_count else None)
    if pa.types.is_struct(kind) and path:
        parts = [found.field(i) for i in range(kind.num_fields)]
        at = kind.get_field_index(path[0])
        if at >= 0:
            parts[at] = _masked(parts[at], path[1:], how, secret)
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=found.is_null())
    if not path and how == HASH and (pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_int64(kind)):
        return _hashed(found, secret)
    if not path and isinstance(how, int) and pa.types.is_string(kind):
        return pc.if_else(pc.equal(found, UNAVAILABLE), found, pc.utf8_slice_codeunits(found, 0, how))
    return pa.nulls(len(found), kind)


def _hashed(found: pa.Array, secret: bytes) -> pa.Array:
    """HMAC-SHA-256: as hex digits of a text, 32 bytes of bytes, the first 8 bytes as a number of a number's digits."""
    encoded, kind = found.dictionary_encode(), found.type
    texts = encoded.dictionary.cast(pa.string()) if pa.types.is_int64(kind) else encoded.dictionary
    values = texts.cast(pa.binary()).to_pylist()
    digests = [hmac.digest(secret, value, _DIGEST) if value != _NO_VALUE else value for value in values]
    if pa.types.is_string(kind):
        new = pa.array([digest.hex() if digest != _NO_VALUE else UNAVAILABLE for digest in digests], kind)
    elif pa.types.is_int64(kind):
        new = pa.array([int.from_bytes(digest[:_LONG_BYTES], signed=True) for digest in digests], kind)
    else:
        new = pa.array(digests, kind)
    return new.take(encoded.indices)
