"""The network between the group and one broker or all: cut, one way, slow, reset; producers and brokers keep theirs."""

from collections.abc import Callable

from bench.three_brokers import OUTAGES
from bench.toxiproxy import DOWN, UP
from tests.system.chaos.nemesis import Fault, Heal, Nemesis
from tests.system.chaos.stage import KGS_CLASS, Stage

NARROW_KB_PER_S = 20
SLICE = {"average_size": 40, "size_variation": 20, "delay": 200}


def _at_one(nemesis: Nemesis, outage: str) -> Heal:
    brokers = nemesis.stage.brokers
    node = nemesis.random.choice(brokers.nodes)
    nemesis.journal.tell(f"chosen: the way to broker {node}")
    return OUTAGES[outage](brokers, node, [KGS_CLASS])


def cut_off_a_broker(nemesis: Nemesis) -> Heal:
    """Nothing arrives, no connection ends."""
    return _at_one(nemesis, "black")


def cut_off_requests(nemesis: Nemesis) -> Heal:
    """One way: the broker is not heard from, for it hears nothing."""
    return _at_one(nemesis, "black in")


def cut_off_answers(nemesis: Nemesis) -> Heal:
    """The other way: it does what it is asked, and nobody learns of it."""
    return _at_one(nemesis, "black out")


def slow_down_a_broker(nemesis: Nemesis) -> Heal:
    return _at_one(nemesis, "slow")


def reset_connections(nemesis: Nemesis) -> Heal:
    return _at_one(nemesis, "reset")


def cut_off_all_brokers(nemesis: Nemesis) -> Heal:
    """The whole group, from all of Kafka."""
    return _at_all(nemesis, lambda node: OUTAGES["black"](nemesis.stage.brokers, node, [KGS_CLASS]))


def narrow_the_network(nemesis: Nemesis) -> Heal:
    spoil = nemesis.stage.brokers.spoil
    return _at_all(nemesis, lambda node: spoil(node, [KGS_CLASS], "bandwidth", UP, DOWN, rate=NARROW_KB_PER_S))


def slice_answers(nemesis: Nemesis) -> Heal:
    """In crumbs, as a bad line does."""
    spoil = nemesis.stage.brokers.spoil
    return _at_all(nemesis, lambda node: spoil(node, [KGS_CLASS], "slicer", DOWN, **SLICE))


def _at_all(nemesis: Nemesis, strike: Callable[[int], Heal]) -> Heal:
    heals = [strike(node) for node in nemesis.stage.brokers.nodes]

    def heal() -> None:
        for each in heals:
            each()

    return heal


def _is_alone(stage: Stage) -> bool:
    return len(stage.kafka.nodes) == 1


def _are_three(stage: Stage) -> bool:
    return len(stage.kafka.nodes) > 1


LASTS_S, AFTER_S = (3.0, 25.0), 20.0
_ONE = (cut_off_a_broker, cut_off_requests, cut_off_answers, slow_down_a_broker, reset_connections)
_ALL = (cut_off_all_brokers, narrow_the_network, slice_answers)
FAULTS = (
    *(Fault(strike, "network", LASTS_S, fits=_are_three, alone="brokers") for strike in _ONE),
    *(Fault(strike, "network", LASTS_S, fits=_is_alone, alone="brokers", excused_s=AFTER_S) for strike in _ONE),
    *(Fault(strike, "network", alone="brokers", excused_s=AFTER_S) for strike in _ALL),
)
