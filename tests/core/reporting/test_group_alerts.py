"""What is wrong with a group, as an observer sees it."""

from kgs_core.group.protocol import FlatOut
from kgs_core.planning.load import Load
from kgs_core.reporting.group_alerts import GroupAlert, group_alerts
from tests.core.reporting.test_status import NOW, ONE, TWO, A, B, C, group, report, seen

READ = group(report(ONE, A, B), report(TWO, C))


def alerts(found, *, has_listened=True):
    return group_alerts(found, has_listened=has_listened)


def test_partitions_of_who_is_silent_have_no_reader():
    """Whether others have taken them over by then is another matter."""
    silent = seen(READ, now=NOW + 31)
    assert alerts(silent)[GroupAlert.ALL_READ] == tuple(f"{tp} has no reader" for tp in (A, B, C))
    assert alerts(silent)[GroupAlert.ALL_HEARD] == tuple(f"consumer {member} is silent" for member in (ONE, TWO))
    assert alerts(silent, has_listened=False)[GroupAlert.ALL_READ] is None, "it has not listened yet"
    assert alerts(seen(READ))[GroupAlert.ALL_READ] == alerts(seen(READ))[GroupAlert.ALL_HEARD] == ()


def test_what_stands_still_is_told_with_its_reason():
    found = seen(group(report(ONE, A, B, stopped={A: "no right"}), report(TWO, C)))
    assert alerts(found)[GroupAlert.ALL_READ] == (f"{A} is stopped: no right",)


def test_what_was_not_measured_is_neither_well_nor_wrong():
    assert {alerts(seen(READ))[each] for each in (GroupAlert.NONE_HOT, GroupAlert.SPEEDS_KNOWN)} == {None}
    measured = alerts(seen(READ, load=Load({A: 1.0}, frozenset({B}))))
    assert (measured[GroupAlert.NONE_HOT], measured[GroupAlert.SPEEDS_KNOWN]) == ((), (f"{B}: its speed is not known",))


def test_hot_is_what_is_faster_than_consumers_have_shown_to_read():
    """As the metric has it: where the capacity is learnt, the configured one says nothing of what is hot."""
    flat_out = FlatOut(92.0, 300.0, 0.0, 1000, 100, {"t": 100}, "x")
    view = group(report(ONE, A, flat_out=flat_out), report(TWO, C))
    facts = {"load": Load({A: 100.0, C: 1.0}, bytes_per_offset={"t": 1.0})}
    assert alerts(seen(view, **facts))[GroupAlert.NONE_HOT] == ()
    learnt = seen(view, packing={"packing_capacity_bytes_per_s": None, "consumer_capacity_bytes_per_s": None}, **facts)
    assert alerts(learnt)[GroupAlert.NONE_HOT] == (f"{A}: 100 bytes/s, and a consumer reads 80",)
