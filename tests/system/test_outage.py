"""One broker of three is out in any way: the group goes on, with all that its users can see of it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.outage import BY_HAND
from bench.three_brokers import OUTAGES, ThreeBrokers
from bench.toxiproxy import DarkAddress
from bench.unread import commits_of
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.system.tcp_ports import HOST
from tests.system.brokers3 import three_brokers
from tests.system.chaos.bystander import Bystander, standing_by
from tests.system.group_record import now
from tests.system.outage_group import HEIR, PARTITIONS, VICTIM, OutageGroup, Outcome, Reached
from tests.system.pipeline import produce
from tests.system.rig import Rig
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.neighbours,
    pytest.mark.chaos,
    pytest.mark.alone,
    pytest.mark.slow(170),
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # kafka-python leaves sockets open
]
OUTAGE_S = 18.0
TWO_OUT_S = 60.0
ELECT_AFTER_S = 8.0
UNREAD_S = 5.0
"""What partitions whose leader lives may be unread for, besides what a change takes without an outage."""
AGAIN_S = 10.0
START_LATER_S = 8.0
LATER_S = 15.0
"""What commands and changes may take longer than with three brokers."""
IN_EVERY_TEST_RUN = ("killed",)


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OutageGroup]:
    folder = tmp_path_factory.mktemp("outage")
    with (
        three_brokers(folder / "brokers") as brokers,
        standing_by(folder / "busy"),
        OutageGroup(folder, brokers, "load", folder / "busy") as group,
    ):
        with group.load, group.controller("--log-dir", str(folder / "logs")):
            group.at_rest(1)
            yield group
            group.brokers.heal()
            group.at_rest()
        group.assert_nothing_lost()


@pytest.fixture(scope="module")
def well(group: OutageGroup, pytestconfig: pytest.Config) -> Outcome:
    """What a change takes without an outage."""
    found = group.strike("none", 1.0, None)
    tell(pytestconfig, str(found))
    return found


def tell(config: pytest.Config, line: str) -> None:
    """Print a line, whatever pytest does with output."""
    with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\n{line}")


def assert_survived(found: Outcome, well: Outcome) -> None:
    """Times are of an idle machine: on a busy one they are longer by as much as everything takes longer there."""
    problems, busy = [], found.busy
    limit = UNREAD_S * busy + max(gap.seconds for gap in (*well.others.values(), *well.lost.values()))
    if (worst := max(gap.seconds for gap in found.others.values())) > limit:
        problems.append(f"partitions of living leaders unread for {worst:.1f} s")
    if found.lost_again_s > AGAIN_S * busy:
        problems.append(f"the lost leader's unread for {found.lost_again_s:.1f} s after the election")
    if found.silent or found.gone:
        problems.append(f"suspected {found.silent}, gone {found.gone}")
    for command, took in found.commands.items():
        if took > well.commands[command] + LATER_S * busy:
            problems.append(f"kgs {command} took {took:.1f} s")
    if found.change_s is None or found.change_s > (well.change_s or 0) + LATER_S * busy:
        problems.append(f"a change took {found.change_s} s")
    assert not problems, problems


@pytest.mark.parametrize(
    "outage", [pytest.param(each, marks=() if each in IN_EVERY_TEST_RUN else pytest.mark.soak) for each in OUTAGES]
)
def test_one_broker_is_out(outage: str, group: OutageGroup, well: Outcome, pytestconfig: pytest.Config) -> None:
    found = group.strike(outage, OUTAGE_S, ELECT_AFTER_S if outage in BY_HAND else None)
    tell(pytestconfig, str(found))
    assert_survived(found, well)


@pytest.mark.soak
def test_two_brokers_are_out(group: OutageGroup, well: Outcome, pytestconfig: pytest.Config) -> None:
    """Nothing can be written, and no topic of the group has a leader: everybody waits, says so, and goes on."""
    members = {line.incarnation for line in group.at_rest().consumers}
    told = group.told()
    for node in (VICTIM, HEIR):
        group.brokers.inflict("killed", node)
    time.sleep(TWO_OUT_S)
    new = group.told() - told
    group.brokers.heal()
    wait_until(lambda: -1 not in group.brokers.leaders().values(), 30, "every partition has a leader")
    back = now()
    again_s = group.wait_work(back)
    busy = Bystander(group.busy).factor(back, now())
    # The producer's backlog may need one more
    assert members <= {line.incarnation for line in group.at_rest().consumers}
    tell(
        pytestconfig,
        f"two brokers out for {TWO_OUT_S:g} s: every partition is read {again_s:.1f} s after they are back",
    )
    assert {log for log, line in new if " WARNING " in line} == {log for log, _ in told}, "somebody does not say why"
    assert again_s <= AGAIN_S * busy + max(gap.seconds for gap in well.others.values())


def start_s(brokers: ThreeBrokers, rig: Rig) -> float:
    """From `kgs control` to new rows of every partition; the group has ended then."""
    produce(brokers.kafka.bootstrap_servers, rig.topic, (b"%d" % n for n in range(50 * PARTITIONS)))
    table = rig.pipeline.lake / rig.topic
    before = {p: len(commits) for p, commits in commits_of(table).items()}

    def is_read() -> bool:
        now_there = commits_of(table)
        return all(len(now_there.get(p, ())) > before.get(p, 0) for p in range(PARTITIONS))

    began = time.monotonic()
    try:
        with rig.controller("--log-dir", str(rig.pipeline.folder / "logs")):
            wait_until(is_read, 60, f"rows: {rig.tail()}")
            return time.monotonic() - began
    finally:
        rig.clean_up()


@pytest.mark.parametrize("address", [pytest.param(each, marks=pytest.mark.soak) for each in ("black", "refused")])
def test_a_start_while_one_broker_is_out(
    address: str, group: OutageGroup, tmp_path: Path, topic_prefix: str, pytestconfig: pytest.Config
) -> None:
    """Its address is the first in kgs.yaml, and drops what is sent to it, or refuses."""
    group.at_rest()
    brokers, folder = group.brokers, tmp_path / topic_prefix.rstrip(".")
    folder.mkdir()
    KafkaAdmin({"bootstrap.servers": brokers.kafka.bootstrap_servers}).create_topic(f"{topic_prefix}t", PARTITIONS, 3)
    every = brokers.bootstrap("tools")
    rig = Rig(folder, Reached(every), f"{topic_prefix}t")
    start_s(brokers, rig)  # makes the group's topics, which could not be made with two brokers
    brokers.arrange(lambda tp: HEIR if tp.partition % 2 else HEIR + 1)
    with_all = start_s(brokers, rig)
    with DarkAddress() as dark:
        if address == "black":
            brokers.inflict("black", VICTIM, ["tools"])
            others = every.split(",")[1:]
            text = rig.pipeline.config.read_text()
            rig.pipeline.config.write_text(text.replace(every, ",".join([f"{HOST}:{dark.port}", *others])))
        else:
            brokers.inflict("refused", VICTIM, ["tools"])
        began = now()
        try:
            without = start_s(brokers, rig)
        finally:
            brokers.heal()
    tell(pytestconfig, f"start: {with_all:.1f} s with all brokers, {without:.1f} s with one that is {address}")
    assert without <= with_all + START_LATER_S * Bystander(group.busy).factor(began, now())
