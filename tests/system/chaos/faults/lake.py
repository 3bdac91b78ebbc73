"""The lake's disk is full or read-only; its store is away, refuses, is late, or does what it is asked twice."""

from tests.system.chaos.lakes import MeddledStore, SmallDisk
from tests.system.chaos.nemesis import Fault, Heal, Nemesis
from tests.system.chaos.stage import Stage
from tests.system.s3_meddler import CONFLICT, LATE, LOSE_REPLIES, LOSE_REQUESTS, TWICE, UNAVAILABLE

MANY = 1_000_000
"""More than there will be: till it is taken back."""
SEVERAL = (1, 5)


def fill_disk(nemesis: Nemesis) -> Heal:
    return _disk(nemesis).fill().unlink


def read_only_disk(nemesis: Nemesis) -> Heal:
    disk = _disk(nemesis)
    disk.remount("ro")
    return lambda: disk.remount("rw")


def kill_store(nemesis: Nemesis) -> Heal:
    store = _store(nemesis)
    store.server.kill()
    return store.server.start


def store_unavailable(nemesis: Nemesis) -> Heal:
    """503 to everything."""
    return _ordered(nemesis, UNAVAILABLE)


def store_late(nemesis: Nemesis) -> Heal:
    """Log entries are written at once, and answered seconds later."""
    return _ordered(nemesis, LATE)


def store_conflict(nemesis: Nemesis) -> None:
    """409 to the next log entries: two writes at a time, ask again."""
    _some(nemesis, CONFLICT)


def store_twice(nemesis: Nemesis) -> None:
    """The next log entries arrive twice, and the second answer is the one that is heard: there already."""
    _some(nemesis, TWICE)


def store_loses_replies(nemesis: Nemesis) -> None:
    _some(nemesis, LOSE_REPLIES)


def store_loses_requests(nemesis: Nemesis) -> None:
    _some(nemesis, LOSE_REQUESTS)


def _ordered(nemesis: Nemesis, what: str) -> Heal:
    meddler = _store(nemesis).meddler
    meddler.order(what, MANY)
    return lambda: meddler.order(what, 0)


def _some(nemesis: Nemesis, what: str) -> None:
    _store(nemesis).meddler.order(what, nemesis.random.randint(*SEVERAL))


def _disk(nemesis: Nemesis) -> SmallDisk:
    lake = nemesis.stage.lake
    assert isinstance(lake, SmallDisk)
    return lake


def _store(nemesis: Nemesis) -> MeddledStore:
    lake = nemesis.stage.lake
    assert isinstance(lake, MeddledStore)
    return lake


def _is_disk(stage: Stage) -> bool:
    return isinstance(stage.lake, SmallDisk)


def _is_store(stage: Stage) -> bool:
    return isinstance(stage.lake, MeddledStore)


AFTER_S = 20.0
"""A topic that failed is tried again after 1 s, 2 s, ... as long as it was away at most."""
FAULTS = (
    Fault(fill_disk, "disk", fits=_is_disk, alone="lake", excused_s=AFTER_S),
    Fault(read_only_disk, "disk", fits=_is_disk, alone="lake", excused_s=AFTER_S),
    *(
        Fault(strike, "store", fits=_is_store, alone="lake", excused_s=AFTER_S)
        for strike in (kill_store, store_unavailable, store_late)
    ),
    *(
        Fault(strike, "store", fits=_is_store)
        for strike in (store_conflict, store_twice, store_loses_replies, store_loses_requests)
    ),
)
