"""Delta's deletion vectors: numbers of the rows of a file that no longer count, in the form of the Delta protocol.

A 64-bit Roaring bitmap of Delta's `RoaringBitmapArray`, without runs. All vectors of one commit lie in one file, in a
folder whose name begins with `_`: vacuums of other tools, which may not know vectors, leave such a folder alone.
"""

import struct
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
from pyarrow import fs

from kgs_core.lake.files.storage import Storage

Rows = npt.NDArray[np.int64]
FOLDER = "_dv"
_MAGIC, _COOKIE = 1681511377, 12346
_MOST_IN_ARRAY = 4096
_CONTAINER = 1 << 16
_FILE_VERSION = b"\x01"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


class ForeignVectorError(Exception):
    """A deletion vector of another writer, in a form that kgs does not write."""


def write_vectors(storage: Storage, table: str, rows: Mapping[str, Rows]) -> dict[str, dict[str, Any]]:
    """Write one file with the vectors of several data files; it counts once a commit names it.

    Args:
        rows: of each data file, sorted, without repetition.

    Returns:
        Delta's `deletionVector` of each.
    """
    name, data, found = uuid.uuid4(), bytearray(_FILE_VERSION), {}
    for path, numbers in rows.items():
        vector = packed(numbers)
        found[path] = {
            "storageType": "u",
            "pathOrInlineDv": FOLDER + _base85(name.bytes),
            "offset": len(data),
            "sizeInBytes": len(vector),
            "cardinality": len(numbers),
        }
        data += struct.pack(">i", len(vector)) + vector + struct.pack(">I", crc32(vector))
    storage.make_folders(table, FOLDER)
    path = _path(name)
    with storage.filesystem().open_output_stream(storage.path(table, path)) as file:
        file.write(bytes(data))
    storage.flush(table, path)
    return found


def read_vector(storage: Storage, table: str, vector: Mapping[str, Any] | None) -> Rows:
    """Row numbers of a `deletionVector`; of None, none.

    Raises:
        ForeignVectorError: another writer has made it.
    """
    if vector is None:
        return np.empty(0, np.int64)
    with storage.filesystem().open_input_file(storage.path(table, path_of(vector))) as file:
        file.seek(vector["offset"] + 4)
        data = file.read(vector["sizeInBytes"])
        (expected,) = struct.unpack(">I", file.read(4))
    if crc32(data) != expected:
        raise ForeignVectorError(f"deletion vector {path_of(vector)} is not whole")
    return unpacked(data)


def remove_old_vectors(
    storage: Storage, table: str, live: Collection[str], before_s: float, replaced: Callable[[], Collection[str]]
) -> None:
    """Remove files of vectors that were made before a time; vacuums leave them.

    Args:
        live: names (`pathOrInlineDv`) of those that count, which stay.
        replaced: names of those that counted a short while ago, which readers of earlier versions may be about to
            read: they stay too. Asked only where there is something to remove.
    """
    selector = fs.FileSelector(storage.path(table, FOLDER), allow_not_found=True)
    old = [
        file.path
        for file in storage.filesystem().get_file_info(selector)
        if file.is_file and file.mtime.timestamp() < before_s
    ]
    gone = {*old} - _paths(storage, table, live)
    for path in sorted(gone - _paths(storage, table, replaced())) if gone else ():
        storage.filesystem().delete_file(path)


def _paths(storage: Storage, table: str, names: Collection[str]) -> set[str]:
    """Of kgs's own: a vector of another writer lies elsewhere."""
    mine = ({"storageType": "u", "pathOrInlineDv": name} for name in names if name.startswith(FOLDER))
    return {storage.path(table, path_of(vector)) for vector in mine}


def path_of(vector: Mapping[str, Any]) -> str:
    """Path of the file of a vector, in the table's folder.

    Raises:
        ForeignVectorError: another writer has made it.
    """
    text = vector["pathOrInlineDv"]
    if vector["storageType"] != "u" or not text.startswith(FOLDER):
        raise ForeignVectorError("something else than kgs has deleted rows of it")
    number = text.removeprefix(FOLDER)
    words = [number[i : i + 5] for i in range(0, len(number), 5)]
    parts = [sum(_DIGITS.index(c) * 85 ** (4 - n) for n, c in enumerate(word)) for word in words]
    return _path(uuid.UUID(bytes=b"".join(part.to_bytes(4, "big") for part in parts)))


def _path(name: uuid.UUID) -> str:
    return f"{FOLDER}/deletion_vector_{name}.bin"


def packed(rows: Rows) -> bytes:
    """Rows, sorted and below 2^32, as a bitmap."""
    keys, starts = np.unique(rows >> 16, return_index=True)
    parts = np.split((rows & 0xFFFF).astype("<u2"), starts[1:]) if len(rows) else []
    bodies = [part.tobytes() if len(part) <= _MOST_IN_ARRAY else _bits(part) for part in parts]
    head = struct.pack("<II", _COOKIE, len(parts))
    head += b"".join(struct.pack("<HH", key, len(part) - 1) for key, part in zip(keys, parts, strict=True))
    at = len(head) + 4 * len(parts) + np.cumsum([0, *map(len, bodies)])[:-1]
    return struct.pack("<iqi", _MAGIC, 1, 0) + head + at.astype("<u4").tobytes() + b"".join(bodies)


def unpacked(data: bytes) -> Rows:
    """Rows of a bitmap.

    Raises:
        ForeignVectorError: it has runs, or rows beyond 2^32.
    """
    magic, bitmaps, high, cookie, count = struct.unpack_from("<iqiII", data)
    if (magic, bitmaps, high, cookie) != (_MAGIC, 1, 0, _COOKIE):
        raise ForeignVectorError("a deletion vector of it has another form")
    return np.concatenate([np.empty(0, np.int64), *_containers(data, count)])


def _containers(data: bytes, count: int) -> Iterator[Rows]:
    at = struct.calcsize("<iqiII")
    sizes, bodies = at, at + 8 * count
    for n in range(count):
        key, less_one = struct.unpack_from("<HH", data, sizes + 4 * n)
        size = less_one + 1
        if size <= _MOST_IN_ARRAY:
            low = np.frombuffer(data, "<u2", size, bodies).astype(np.int64)
            bodies += 2 * size
        else:
            bits = np.frombuffer(data, np.uint8, _CONTAINER // 8, bodies)
            low = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
            bodies += _CONTAINER // 8
        yield (key << 16) + low


def _bits(low: npt.NDArray[np.uint16]) -> bytes:
    found = np.zeros(_CONTAINER, np.bool_)
    found[low] = True
    return np.packbits(found, bitorder="little").tobytes()


def _base85(data: bytes) -> str:
    """Z85, which Delta names files by."""
    words = (int.from_bytes(data[i : i + 4], "big") for i in range(0, len(data), 4))
    return "".join(_DIGITS[word // 85**n % 85] for word in words for n in (4, 3, 2, 1, 0))
