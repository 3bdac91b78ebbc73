"""Tables that change hands while the old side still reads: what it has in flight harms neither side."""

import pytest

from kgs_core.adapters.lake.storage import Storage
from kgs_core.errors import UnsafeError
from kgs_core.ports import CommitOutcome
from tests.core.adapters.lake.test_adoption import MemoryKafka, adopt, clean, move, put_kafka
from tests.sink import Sink


@pytest.fixture
def storage(tmp_path, monkeypatch):
    put_kafka(monkeypatch, MemoryKafka())
    return Storage(str(tmp_path))


@pytest.mark.parametrize("letters_before", [True, False])
@pytest.mark.parametrize("moved", ["group", "topic"])
def test_who_reads_on_writes_no_first_dead_letter_of_a_partition(storage, monkeypatch, letters_before, moved):
    """Neither had one of partition 1 yet; its batch was read before the tables changed hands."""
    old = Sink(storage).started(2)
    old.ingest({0: (0, 12 if letters_before else 3)})
    batch = old.read({1: (0, 8)})
    if moved == "group":
        adopt(storage)
        heir = Sink(storage, group="h")
    else:
        put_kafka(monkeypatch, MemoryKafka("id2"))
        move(storage, keep=True)
        heir = Sink(storage, topic_id="id2")
    assert old.table.commit(batch) is CommitOutcome.REFUSED
    with pytest.raises(UnsafeError, match="handed over"):
        old.table.positions({1})
    assert heir.ingest({1: (0, 8)}) is CommitOutcome.COMMITTED
    assert [row["_offset"] for row in heir.rows("t_dead_letters") if row["_partition"] == 1] == [4]
    clean(storage, "h" if moved == "group" else "g")
    if moved == "group":
        adopt(storage, "h", "g")  # and back
        assert heir.table.commit(batch) is CommitOutcome.REFUSED
        assert Sink(storage).ingest({1: (8, 12)}) is CommitOutcome.COMMITTED
        clean(storage, "g")
