"""Records whose rows were decided to end: which ones, and by what. Small files beside the log of the topic's own table.

A file is written before any row goes, and says by a decision of whom (`keep` of a rule, or `erase` of a person) which
places are to be free. So an offset without a row is either named here, or lost. Files only say more, in whatever order
they come: several say what one of all their places says, which is how many become one again.
"""

import re
from collections.abc import Mapping
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kgs_core.errors import PortError, TransientError, one_line
from kgs_core.lake.files.intent_store import IntentStore
from kgs_core.lake.files.places import PartitionKey, Places, Runs
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule import Offsets
from kgs_core.model import TopicId

ENDED_FOLDER = "_kgs_ended"
DECISIONS = ("keep", "erase")
MOST_FILES = 50
"""Files of a table that are left as they are."""
TRIES = 5
_NAME = re.compile(r"([a-z]+)-[0-9a-f]{32}\.places")


def load_ended(storage: Storage, table: str) -> dict[str, dict[PartitionKey, Offsets]]:
    """Decision -> places, of a topic's own table: eight bytes for each.

    Raises:
        TransientError: the store did not answer.
    """
    runs = {by: load_runs(storage, table, by) for by in DECISIONS}
    return {by: {key: _offsets(*each) for key, each in found.items()} for by, found in runs.items() if found}


def load_erased(storage: Storage, table: str) -> dict[PartitionKey, Offsets]:
    """Places that a person has ended. Raises as `load_ended`."""
    return {key: _offsets(*runs) for key, runs in load_runs(storage, table, "erase").items()}


def load_runs(storage: Storage, table: str, by: str) -> dict[PartitionKey, Runs]:
    """The places of one decision as runs, of which there are few.

    Raises:
        TransientError: the store did not answer.
    """
    store, problem = IntentStore(storage, table, ENDED_FOLDER), None
    for _ in range(TRIES):
        try:
            return _load(store, _files(store, by))
        except FileNotFoundError as e:  # another has made one of several
            problem = e
        except PortError:
            raise
        except Exception as e:
            raise TransientError(f"table {table}: {ENDED_FOLDER}: {one_line(e)}") from e
    raise TransientError(f"table {table}: {ENDED_FOLDER}: {problem}: run it again")


def ended_names(storage: Storage, table: str) -> tuple[str, ...]:
    """Names of all such files, which are others once more was decided. Raises what the store's client does."""
    return tuple(sorted(IntentStore(storage, table, ENDED_FOLDER).ages()))


def note_ended(storage: Storage, table: str, by: str, places: Places) -> None:
    """Note a decision for good.

    Raises:
        TransientError: the store did not answer; run it again.
    """
    try:
        store = IntentStore(storage, table, ENDED_FOLDER)
        _put(storage, table, store, by, {key: _runs_of(offsets) for key, offsets in places.items()})
        if len(names := _files(store, by)) > MOST_FILES:
            _put(storage, table, store, by, _load(store, names))
            store.remove(names)  # each is in the new one
    except PortError:
        raise
    except Exception as e:
        raise TransientError(f"table {table}: {ENDED_FOLDER}: {one_line(e)}: run it again") from e


def _files(store: IntentStore, by: str) -> list[str]:
    return [name for name in store.ages() if (match := _NAME.fullmatch(name)) and match[1] == by]


def _put(storage: Storage, table: str, store: IntentStore, by: str, runs: Mapping[PartitionKey, Runs]) -> None:
    name = f"{by}-{uuid4().hex}.places"
    store.put(name, _encoded(runs))
    storage.flush(table, f"{ENDED_FOLDER}/{name}")


def _load(store: IntentStore, names: list[str]) -> dict[PartitionKey, Runs]:
    parts: dict[PartitionKey, list[Runs]] = {}
    for name in names:
        rows = pq.read_table(pa.BufferReader(store.read(name)))
        for topic_id, partition in zip(
            *rows.group_by(["topic_id", "partition"]).aggregate([]).to_pydict().values(), strict=True
        ):
            here = pc.and_(pc.equal(rows["topic_id"], topic_id), pc.equal(rows["partition"], partition))
            runs = rows.filter(here)
            key = PartitionKey(TopicId(topic_id), partition)
            parts.setdefault(key, []).append((runs["first"].to_numpy(), runs["last"].to_numpy()))
    return {key: _joined(runs) for key, runs in parts.items()}


def _joined(many: list[Runs]) -> Runs:
    """Runs that cover the same, ascending and apart."""
    first, last = (np.concatenate(each) for each in zip(*many, strict=True))
    order = np.argsort(first, kind="stable")
    first, last = first[order], np.maximum.accumulate(last[order])
    begins = np.flatnonzero(np.append(True, first[1:] > last[:-1] + 1))
    return first[begins], last[np.append(begins[1:], len(first)) - 1]


def _runs_of(offsets: Offsets) -> Runs:
    begins = np.flatnonzero(np.diff(offsets, prepend=offsets[:1] - 2) > 1)
    return offsets[begins], offsets[np.append(begins[1:], len(offsets)) - 1]


def _offsets(first: Offsets, last: Offsets) -> Offsets:
    counts = last - first + 1
    return np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())


def _encoded(runs: Mapping[PartitionKey, Runs]) -> bytes:
    """A line for each run."""
    parts = [
        pa.table(
            {
                "topic_id": pa.repeat(str(key.topic_id), len(first)),
                "partition": pa.repeat(key.partition, len(first)),
                "first": first,
                "last": last,
            }
        )
        for key, (first, last) in runs.items()
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.concat_tables(parts), sink, compression="zstd")
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
