"""A group under random faults from a seed: nothing is lost or doubled, it comes to rest, and what can be read is read.

Real processes, a real broker and a real disk: what is tried is that they die, freeze and fill up at any moment. One
seed has Spark, whose JVM and workers are struck above all; in the others consumers start in a second, and more happens.
Repeat a run with `pytest -m system tests/system/test_nemesis.py -k SEED`; `make soak` has a third seed, and does it
for an hour.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import KgsError
from kgs_core.group.protocol import RunState
from kgs_core.model import TopicPartition
from kgs_core.reporting.status import GroupStatus
from kgs_core.runtime.group_status import GroupWatch
from tests.system.ledger import Ledger, lost_and_doubled, rows_of
from tests.system.nemesis import FAULTS, SPARK_ABOVE_ALL, WITHOUT_SPARK, Fault, Nemesis, small_disk
from tests.system.test_control import SECTIONS, Rig
from tests.waiting import PATIENCE, wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.slow(120), pytest.mark.timeout(5400)]
LOAD_BYTES_PER_S = 80_000.0
SUSPECT_S = 6.0
BATCH_S = 3.0
"""A batch here, on a busy machine."""
REST_S = 60.0
FRESH_S = 2.0


class Watcher(threading.Thread):
    """Looks at the group all the time: for how long was a partition unread while somebody who could read had joined?"""

    def __init__(self, nemesis: Nemesis) -> None:
        super().__init__(name="watcher", daemon=True)
        self.longest: dict[TopicPartition, float] = {}
        self.looks = 0
        self._nemesis = nemesis
        self._unread_since: dict[TopicPartition, float] = {}
        self._stop_asked = threading.Event()

    def run(self) -> None:
        while not self._stop_asked.is_set():
            try:
                with GroupWatch(self._nemesis.rig.settings) as group:
                    while not self._stop_asked.wait(0.5):
                        self._note(group.look(with_lake=False), time.monotonic())
            except KgsError:  # the broker is away
                self._unread_since.clear()

    def _note(self, found: GroupStatus, now: float) -> None:
        self.looks += 1
        somebody = any(
            line.incarnation is not None and line.report_age_s is not None and line.report_age_s < FRESH_S
            for line in found.consumers
        )
        paused = found.desired_state is not None and found.desired_state.state is not RunState.RUNNING
        counts = somebody and not paused and found.controller_is_heard and now > self._nemesis.quiet_from
        if not counts or found.target is None:
            self._unread_since.clear()
            return
        unread = found.target.assignment.keys() - found.current.keys()
        self._unread_since = {tp: self._unread_since.get(tp, now) for tp in unread}
        for tp, since in self._unread_since.items():
            self.longest[tp] = max(self.longest.get(tp, 0.0), now - since)

    def close(self) -> None:
        self._stop_asked.set()
        self.join()


@pytest.fixture
def open_nemesis(topic_prefix: str, tmp_path: Path) -> Iterator[Callable[[int], Nemesis]]:
    with small_disk(tmp_path / "disk") as disk, EmbeddedKafka.start(tmp_path / "kafka", log=print) as kafka:
        opened: list[Nemesis] = []

        def open_(seed: int) -> Nemesis:
            folder = tmp_path / topic_prefix.rstrip(".")
            folder.mkdir()
            sections = {
                "packing": {**SECTIONS["packing"], "spare_consumers": 1, "max_consumers": 2},
                "membership": {**SECTIONS["membership"], "suspect_after_s": SUSPECT_S},
                "lake": {"root": str(disk / "lake")},
            }
            rig = Rig(folder, kafka, f"{topic_prefix}load", **sections)
            rig.pipeline.lake = Path(rig.settings.lake.root)
            opened.append(Nemesis(Random(seed), rig, kafka, disk))
            return opened[0]

        try:
            yield open_
        finally:
            for nemesis in opened:
                nemesis.end()


def at_rest(nemesis: Nemesis) -> bool:
    """Everybody is where they shall be, every partition is read, and nothing stands still."""
    nemesis.keep_controller()
    try:
        with GroupWatch(nemesis.rig.settings) as group:
            found = group.look(with_lake=False)
    except KgsError:
        return False
    return (
        found.is_converged
        and len(found.current) == nemesis.partitions
        and not any(line.stopped or line.needs_attention for line in found.consumers)
    )


def torment(nemesis: Nemesis, faults: Sequence[Fault], seconds: float = 0.0) -> str:
    """All of these faults, again and again for so long; then everything is right. Gives a line for people."""
    rig = nemesis.rig
    nemesis.keep_controller()
    ledger = Ledger(rig.pipeline.bootstrap, rig.topic, lambda: nemesis.partitions, LOAD_BYTES_PER_S)
    ledger.start()
    wait_until(lambda: at_rest(nemesis), 120, f"the group begins\n{rig.tail()}")
    watcher = Watcher(nemesis)
    watcher.start()
    try:
        began = time.monotonic()
        nemesis.run(faults, seconds)
        healed = time.monotonic()
        wait_until(lambda: at_rest(nemesis), REST_S, f"rest after {nemesis.logged[-20:]}\n{rig.tail()}")
        rest_s = time.monotonic() - healed
    finally:
        watcher.close()
        ledger.close()
    rig.pipeline.wait_caught_up([rig.topic], 60)
    assert rig.pipeline.admin.describe([rig.topic])[rig.topic].partitions == nemesis.partitions
    found = lost_and_doubled(ledger.acknowledged, rows_of(rig.pipeline.lake / rig.topic))
    assert found == ([], [], []), [each[:3] for each in found]
    rig.pipeline.assert_audit_is_clean()
    worst = max(watcher.longest.values(), default=0.0)
    assert watcher.looks > (healed - began) / 10
    assert worst <= PATIENCE * (SUSPECT_S + 2 * BATCH_S), (watcher.longest, nemesis.logged)
    return (
        f"{nemesis.struck.total()} faults in {healed - began:.0f} s, {ledger.sent} records, 0 lost, 0 doubled; "
        f"at rest {rest_s:.0f} s after the healing; "
        f"a partition was unread for {worst:.1f} s at most while somebody could read it"
    )


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("seed", "faults"),
    [
        pytest.param(1, SPARK_ABOVE_ALL, marks=pytest.mark.spark),
        (2, WITHOUT_SPARK),
        pytest.param(3, WITHOUT_SPARK, marks=pytest.mark.soak),
    ],
    ids=["1", "2", "3"],
)
def test_random_faults(
    seed: int, faults: Sequence[Fault], open_nemesis: Callable[[int], Nemesis], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each fault at least once, whatever the seed: it says when, to whom, for how long, and beside which others."""
    nemesis = open_nemesis(seed)
    line = torment(nemesis, faults)
    assert nemesis.struck.keys() == {fault.__name__ for fault in faults}
    with capsys.disabled():
        print(f"\nseed {seed}: {line}")


@pytest.mark.soak
@pytest.mark.spark
def test_random_faults_for_an_hour(open_nemesis: Callable[[int], Nemesis], capsys: pytest.CaptureFixture[str]) -> None:
    """A seed that nobody has tried, told so that it can be."""
    seed = int(time.time())  # noqa: TID251 - a new one each time
    line = torment(open_nemesis(seed), FAULTS, 3600)
    with capsys.disabled():
        print(f"\nseed {seed}: {line}")
