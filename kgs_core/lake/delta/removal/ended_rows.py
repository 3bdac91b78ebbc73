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
import pyarrow.parquet as pq

from kgs_core.errors import PortError, TransientError, one_line
from kgs_core.lake.delta.intent_store import IntentStore, intent_store
from kgs_core.lake.files.places import PartitionKey, Places, joined
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule import Offsets
from kgs_core.model import TopicId

ENDED_FOLDER = "_kgs_ended"
MOST_FILES = 50
"""Files of a table that are left as they are."""
TRIES = 5
_NAME = re.compile(r"([a-z]+)-[0-9a-f]{32}\.places")


def load_ended(storage: Storage, table: str) -> dict[str, dict[PartitionKey, Offsets]]:
    """Decision -> places, of a topic's own table.

    Raises:
        TransientError: the store did not answer.
    """
    store, problem = intent_store(storage, table, ENDED_FOLDER), None
    for _ in range(TRIES):
        try:
            return _load(store, list(store.ages()))
        except FileNotFoundError as e:  # another has made one of several
            problem = e
        except PortError:
            raise
        except Exception as e:
            raise TransientError(f"table {table}: {ENDED_FOLDER}: {one_line(e)}") from e
    raise TransientError(f"table {table}: {ENDED_FOLDER}: {problem}: run it again")


def note_ended(storage: Storage, table: str, by: str, places: Places) -> None:
    """Note a decision for good.

    Raises:
        TransientError: the store did not answer; run it again.
    """
    try:
        store = intent_store(storage, table, ENDED_FOLDER)
        _put(storage, table, store, by, places)
        if len(names := [name for name in store.ages() if name.startswith(f"{by}-")]) > MOST_FILES:
            _put(storage, table, store, by, _load(store, names)[by])
            store.remove(names)  # each is in the new one
    except PortError:
        raise
    except Exception as e:
        raise TransientError(f"table {table}: {ENDED_FOLDER}: {one_line(e)}: run it again") from e


def _put(storage: Storage, table: str, store: IntentStore, by: str, places: Places) -> None:
    name = f"{by}-{uuid4().hex}.places"
    store.put(name, _encoded(places))
    storage.flush(table, f"{ENDED_FOLDER}/{name}")


def _load(store: IntentStore, names: list[str]) -> dict[str, dict[PartitionKey, Offsets]]:
    found: dict[str, list[Places]] = {}
    for name in names:
        if match := _NAME.fullmatch(name):
            found.setdefault(match[1], []).append(_decoded(store.read(name)))
    return {by: joined(*each) for by, each in found.items()}


def _encoded(places: Places) -> bytes:
    """A line for each run of offsets."""
    parts = []
    for key, offsets in places.items():
        firsts = np.flatnonzero(np.diff(offsets, prepend=offsets[:1] - 2) > 1)
        lasts = np.append(firsts[1:], len(offsets)) - 1
        runs = {"first": offsets[firsts], "last": offsets[lasts]}
        place = pa.repeat(str(key.topic_id), len(firsts)), pa.repeat(key.partition, len(firsts))
        parts.append(pa.table({"topic_id": place[0], "partition": place[1], **runs}))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.concat_tables(parts), sink, compression="zstd")
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _decoded(data: bytes) -> dict[PartitionKey, Offsets]:
    runs: dict[PartitionKey, list[Offsets]] = {}
    rows: Mapping[str, list[int]] = pq.read_table(pa.BufferReader(data)).to_pydict()
    for topic_id, partition, first, last in zip(*rows.values(), strict=True):
        run = np.arange(first, last + 1, dtype=np.int64)
        runs.setdefault(PartitionKey(TopicId(topic_id), partition), []).append(run)
    return {key: np.unique(np.concatenate(found)) for key, found in runs.items()}
