"""What a store must be able to do for a lake, tried one by one beside its tables; nothing is left behind."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import pyarrow as pa
from pyarrow import fs

from kgs_core.config.settings import LakeSettings
from kgs_core.errors import PermanentError, PortError, TransientError, UnsafeError, one_line
from kgs_core.lake.delta.delta_lake import DeltaLake
from kgs_core.lake.delta.log_entry import entry_of
from kgs_core.lake.delta.log_store import LOG_FOLDER, log_store
from kgs_core.lake.delta.probe import PROBE_FOLDER, probe, probe_place, refusal, remove_probe
from kgs_core.lake.delta.whole_table import opened_table
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.combining import CommitIntent

_SCHEMA = pa.schema([("x", pa.int64())])
_COMMITS = 5
_LARGE_BYTES = 12_000_000
_MOST_SKEW_S = 60.0


@dataclass(frozen=True, slots=True)
class StoreFinding:
    """One thing that a store must do.

    Attributes:
        what: the thing.
        problem: why it does not; None where it does.
        detail: what was seen, or empty.
        seconds: that it took.
    """

    what: str
    problem: PortError | None
    detail: str
    seconds: float


def check_store(storage: Storage) -> Iterator[StoreFinding]:
    """Everything that consumers and maintenance ask of a store; the rest only where a file can be written at all."""
    place, table = probe_place(storage)
    steps: tuple[tuple[str, Callable[[Storage, str], str]], ...] = (
        ("write a file, read it whole and in part", _files),
        ("refuse the second of two writers of one name", _condition),
        ("list what was just written, from a name on", _listing),
        ("write a large file in parts", _large_file),
        ("make, commit, compact and read a Delta table", _delta_table),
        ("give files the time of this machine's clock", _clock),
        ("delete", _delete),
        *(() if storage.is_in_objects else (("find every table whole", lambda *_: _tables(storage)),)),
    )
    answers = True
    try:
        for what, step in steps:
            began, problem, detail = time.monotonic(), None, ""
            try:
                detail = step(place, table)
            except PortError as e:
                problem = e
            except Exception as e:  # noqa: BLE001 - stores' clients and deltalake raise what they like
                problem = refusal(storage, e)
            yield StoreFinding(what, problem, detail, time.monotonic() - began)
            if problem is not None and step is _files:
                answers = not isinstance(problem, TransientError)
                return
    finally:
        if answers:
            remove_probe(place, table)


def _write(storage: Storage, name: str, data: bytes) -> None:
    folder, _, _ = name.rpartition("/")
    if not storage.is_in_objects:
        storage.filesystem().create_dir(storage.path(folder))
    with storage.filesystem().open_output_stream(storage.path(name)) as file:
        file.write(data)


def _files(storage: Storage, table: str) -> str:
    name, data = f"{table}/a b%3A.bin", bytes(range(256)) * 40
    _write(storage, name, data)
    with storage.filesystem().open_input_file(storage.path(name)) as file:
        whole = file.read()
        file.seek(5000)
        part = file.read(100)
    if (whole, part) != (data, data[5000:5100]):
        raise UnsafeError(f"lake {storage.root}: another content was read than was written: use another store")
    return ""


def _condition(storage: Storage, _: str) -> str:
    probe(storage)
    return ""


def _listing(storage: Storage, table: str) -> str:
    if not storage.is_in_objects:
        storage.filesystem().create_dir(storage.path(f"{table}/{LOG_FOLDER}"))
    log, took = log_store(storage, table), []
    for number in range(_COMMITS):
        began = time.monotonic()
        log.create(number, entry_of([CommitIntent({}, {"kgs-check": number}, ())], "kgs check"))
        took.append(time.monotonic() - began)
        if number not in log.since(None).stamps:
            raise PermanentError(f"lake {storage.root}: a file that was just written is not listed: use another store")
    if sorted(log.since(2).stamps) != list(range(2, _COMMITS)):
        raise PermanentError(
            f"lake {storage.root}: a listing from a name on has other files than a whole one: each commit would list "
            "the whole log: use another store, or another address of this one"
        )
    return f"{1000 * median(took):.0f} ms each"


def _large_file(storage: Storage, table: str) -> str:
    name, data = f"{table}/large.bin", bytes(_LARGE_BYTES)
    began = time.monotonic()
    _write(storage, name, data)
    took = time.monotonic() - began
    if storage.filesystem().get_file_info(storage.path(name)).size != len(data):
        raise UnsafeError(f"lake {storage.root}: a large file has another size than was written: use another store")
    return f"{_LARGE_BYTES / 1e6 / took:.0f} MB/s"


def _delta_table(storage: Storage, table: str) -> str:
    settings = LakeSettings(root=storage.root, storage_options=dict(storage.options), checkpoint_interval=2)
    lake, name = DeltaLake(settings), f"{table}/table"
    made = lake.table(name, _SCHEMA)
    made.create()
    took = []
    for n in range(_COMMITS):
        file = write_table(storage, name, [pa.record_batch([pa.array([n], pa.int64())], schema=_SCHEMA)], _SCHEMA)
        began = time.monotonic()
        made.commit({"kgs-check": n or None}, {"kgs-check": n + 1}, [file])
        took.append(time.monotonic() - began)
    upkeep = lake.maintain(name, dry_run=False)
    pinned = lake.pin(name)
    rows = [] if pinned is None else [x for file in pinned.files() for x in pinned.read(file, ["x"])["x"].to_pylist()]
    if sorted(rows) != list(range(_COMMITS)):
        raise UnsafeError(f"lake {storage.root}: other rows were read than were committed: use another store")
    if upkeep is not None and upkeep.problem is not None:
        raise PermanentError(f"lake {storage.root}: {upkeep.problem}")
    return f"{1000 * median(took):.0f} ms a commit"


def _clock(storage: Storage, table: str) -> str:
    before = time.time()
    _write(storage, f"{table}/clock", b"x")
    skew = storage.filesystem().get_file_info(storage.path(f"{table}/clock")).mtime.timestamp() - before
    if abs(skew) > _MOST_SKEW_S:
        raise PermanentError(
            f"lake {storage.root}: its clock and this machine's differ by {skew:.0f} s, and vacuum goes by the ages of "
            "files: set this machine's clock"
        )
    return f"{skew:+.0f} s"


def _tables(storage: Storage) -> str:
    """All that lie below the root, as consumers look at them; those that a power cut has torn are named."""
    names: list[str] = []
    torn: list[str] = []
    for folder, below, _ in os.walk(storage.root):
        if LOG_FOLDER in below:
            names.append(os.path.relpath(folder, storage.root))
            below.clear()  # partitions, which may be many
        elif PROBE_FOLDER in below:
            below.remove(PROBE_FOLDER)
    for name in sorted(names):
        try:
            opened_table(storage, name)
        except PortError as e:
            torn.append(str(e))
        except Exception as e:  # noqa: BLE001 - as above
            torn.append(f"table {name}: {one_line(e)}")
    if torn:
        raise UnsafeError("; ".join(torn))
    return f"{len(names)} tables"


def _delete(storage: Storage, table: str) -> str:
    storage.filesystem().delete_dir(storage.path(table))
    selector = fs.FileSelector(storage.path(table), allow_not_found=True, recursive=True)
    if storage.filesystem().get_file_info(selector):
        raise PermanentError(
            f"lake {storage.root}: what was deleted in {table} is still there: consumers do not mind, but `kgs "
            "maintain` needs the right to delete"
        )
    return ""
