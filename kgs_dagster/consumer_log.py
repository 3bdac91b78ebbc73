"""Log of a consumer on its run's page: what it reads, whenever that changes, and at last why it ended."""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping

from kgs_core.group.membership.membership import Membership
from kgs_core.group.view.plain_text import counted
from kgs_core.model import TopicPartition
from kgs_core.reporting.sentences import stopped_causes

LOOK_EVERY_S = 1.0
LOG_EVERY_S = 60.0
"""Every line is an event in Dagster's database, for as long as the run is kept; and a run lasts for weeks."""
_SHOWN = 20
Look = Callable[[], Membership | None]


class ReadingLog:
    """Tells while the block runs what is read, at a change and once a minute at most."""

    def __init__(self, look: Look, tell: Callable[[str], None], every_s: float = LOG_EVERY_S) -> None:
        """`look` gives the consumer once it has joined; a thread of its own calls `tell` with each line."""
        self._look = look
        self._tell = tell
        self._every_s = every_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="reading-log", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(LOOK_EVERY_S)  # a database that hangs must not keep the process from ending

    def _watch(self) -> None:
        last_logged: object = None
        wait_s = 0.0
        while not self._over.wait(wait_s):
            now = self._look()
            wait_s = min(LOOK_EVERY_S, self._every_s)
            if now is None or not _is_complete(now) or _subject(now) == last_logged:
                continue
            last_logged = _subject(now)
            try:
                self._tell(reading(now))
            except Exception:  # noqa: BLE001 - the database's own kinds: the consumer reads on without this line
                last_logged = None
            wait_s = self._every_s


def reading(membership: Membership) -> str:
    """What is read and from where on, and what stands still and why: a line for people."""
    owned, facts = membership.owned, membership.facts
    if not owned:
        return f"consumer {membership.member.consumer} reads nothing: no partition is given to it"
    read = owned - facts.stopped.keys()
    count = f"{len(read)} of its " * (len(read) < len(owned)) + counted(len(owned), "partition")
    line = f"consumer {membership.member.consumer} reads {count}"
    if read:
        line += f": {_partitions(read, facts.positions)}"
    still = {tp: facts.stopped[tp] for tp in owned - read}
    return f"{line}; stopped: {stopped_causes(still)}" if still else line


def _subject(membership: Membership) -> object:
    """What counts as a change: positions move all the time."""
    return membership.owned, frozenset(membership.facts.stopped.items())


def _is_complete(membership: Membership) -> bool:
    """Whether positions are known of what is read, as far as it does not stand still."""
    facts = membership.facts
    return membership.owned <= facts.positions.keys() | facts.stopped.keys()


def _partitions(tps: frozenset[TopicPartition], positions: Mapping[TopicPartition, int]) -> str:
    topics: dict[str, list[str]] = defaultdict(list)
    for tp in sorted(tps)[:_SHOWN]:
        topics[tp.topic].append(f"{tp.partition} from {positions[tp]}")
    more = [f"{len(tps) - _SHOWN} more"] if len(tps) > _SHOWN else []
    return "; ".join([*(f"{topic} {', '.join(found)}" for topic, found in topics.items()), *more])
