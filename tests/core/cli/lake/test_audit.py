"""`kgs audit`: what its lines say; the command itself is tried on real tables (tests/system)."""

from kgs_core.cli.lake.audit import lines
from kgs_core.lake.rule import LakeAudit, PartitionAudit, StoredPositions, TableAudit
from kgs_core.model import TopicId


def audited(rows, dead_letters):
    partition = PartitionAudit(StoredPositions(TopicId("x"), 0, 0, rows + dead_letters), rows, dead_letters, ())
    return LakeAudit((TableAudit("orders", "bronze/orders", "one_to_one", 7, (partition,), ()),))


def test_a_table_of_nothing_but_dead_letters_is_no_fault_and_no_silence():
    """Exactly once it is: the exit status stays. But nobody has made such a table on purpose."""
    found = audited(0, 224_600)
    assert found.ok
    assert "  WARNING: 224,600 dead letters of orders and no row: fix its rule or the producer" in [*lines(found)]
    assert "WARNING" not in " ".join([*lines(audited(1, 224_600)), *lines(audited(0, 0)), *lines(audited(5, 0))])


def test_lines_of_a_table_that_topics_share_tell_them_apart():
    tables = [TableAudit(topic, "bronze/all", "one_to_one", 7, (), ()) for topic in ("orders.a", "orders.b")]
    alone = TableAudit("clicks", "bronze/clicks", "one_to_one", 7, (), ())
    first = [line.split("  ")[0] for line in lines(LakeAudit((*tables, alone)))]
    assert first == ["table", "bronze/all of orders.a", "bronze/all of orders.b", "bronze/clicks"]
