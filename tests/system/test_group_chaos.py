"""A whole group, controller and all, under what machines do to it: silence, twins, deaths."""

import os
import signal
from collections.abc import Callable, Collection

import psutil
import pytest

from bench.load_shapes import KnownLoad
from tests.processes import pid_of
from tests.system.group_record import find_problems, gone_in_order, now, time_of_stop
from tests.system.pipeline import ConsumerProcess
from tests.system.rig import BUSY, LIFE_S, ended
from tests.system.shaken_group import ShakenGroup, incarnation_of, line_of, owned_besides, owned_by, readers_of
from tests.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.slow(60), pytest.mark.timeout(1500)]
SHORT_S = 8.0
PAUSE_S = SHORT_S / 4


def pause(group: ShakenGroup, number: int) -> None:
    """It is silent for less than what makes it a suspect: nothing moves."""
    before = group.look()
    held = owned_by(before, number)
    at = now()
    with group.frozen(number):
        group.wait(lambda found: (line_of(found, number).report_age_s or 0) > PAUSE_S, "it is silent")
    group.wait(lambda found: (line_of(found, number).report_age_s or 0) < PAUSE_S, "it is heard again")
    group.wait_read(held)
    after = group.look()
    assert (after.target, after.current) == (before.target, before.current)
    group.tell("silent for less than suspect_after_s", held, at)
    group.assert_right()


def silence(group: ShakenGroup, number: int) -> None:
    """It is silent for longer than that: others read what it read, and it gives up once it is back."""
    before = group.look()
    held, incarnation = owned_by(before, number), incarnation_of(before, number)
    process = group.processes(number)[0]
    at = now()
    with group.frozen(number):
        group.wait(lambda found: owned_besides(found, number) >= held, "others read what it read")
        group.wait_read(held)
        assert process.status() == psutil.STATUS_STOPPED
    group.tell("silent for longer than suspect_after_s", held, at)
    wait_until(lambda: process.pid not in group.consumers().values(), 60, f"it gives up: {group.tail()}")
    group.wait_settled(2, without=[incarnation])
    records = group.assert_right()
    assert "S4" in str(find_problems(group.settings, records, group.deaths, with_silences=False)), (
        "its silence alone gave others the right to read"
    )
    group.logged[-1] += (
        "; it said its last word" if incarnation in gone_in_order(records) else "; its process ended at once"
    )


def twin(group: ShakenGroup, number: int) -> ConsumerProcess:
    """A second process of a consumer, started by hand: the older one lets go and ends."""
    before = group.look()
    held, incarnation = owned_by(before, number), incarnation_of(before, number)
    pid = group.consumers()[number]
    process = group.start_by_hand(number)
    found = group.wait_settled(2, without=[incarnation])
    assert (pid_of(line_of(found, number).process), owned_by(found, number)) == (process.process.pid, held)
    wait_until(lambda: pid not in group.consumers().values(), 60, f"the older one has ended: {group.tail()}")
    group.wait_read(held)
    records = group.assert_right()
    assert incarnation in gone_in_order(records)
    group.tell("handed over to a twin", held, time_of_stop(records, incarnation, held))
    return process


def death(group: ShakenGroup, number: int) -> None:
    """It is killed: its partitions are read again, by a spare."""
    before = group.look()
    held, incarnation = owned_by(before, number), incarnation_of(before, number)
    os.kill(group.consumers()[number], signal.SIGKILL)
    at = group.deaths[incarnation] = now()
    group.wait_read(held)
    group.tell("killed", held, at)
    found = group.wait_settled(2, without=[incarnation])
    assert set(found.current.values()) > set(before.current.values()) - {number}
    group.assert_right()


def is_started_again(group: ShakenGroup, number: int, killed: Collection[str]) -> bool:
    """Whether it has one run, and none of the killed ones, of which a JVM may live on for a moment."""
    runs = group.runs(number)
    return len(runs) == 1 and not runs.keys() & killed


def several_deaths_at_once(group: ShakenGroup) -> None:
    """Both readers and the spare are killed; of those that come again one is slow: the others read all there is.

    It is frozen as soon as its process is there, which takes longer than that to join.
    """
    before = group.look()
    everything = frozenset(before.current)
    late = readers_of(before)[-1]
    killed = {number: incarnation_of(before, number) for number in group.consumers()}
    pids, runs = group.consumers(), set(group.runs(late))
    for number, incarnation in killed.items():
        os.kill(pids[number], signal.SIGKILL)
        group.deaths[incarnation] = now()
    at = now()
    wait_until(lambda: is_started_again(group, late, runs), LIFE_S, f"{late} is started again")
    with group.frozen(late):
        group.wait(lambda found: owned_besides(found, late) == everything, "the others read everything")
        group.wait_read(everything)
        assert not any(line.consumer == late and line.partitions for line in group.look().consumers)
    group.tell("three killed at once, and one of them is late", everything, at)
    found = group.wait_settled(2, without=[*killed.values()])
    assert late not in readers_of(found), "who comes late is the spare"
    group.assert_right()


def test_several_deaths_at_once_then_silence_a_twin_and_a_death(open_group: Callable[..., ShakenGroup]) -> None:
    """One after the other on one group, whose numbers are used again."""
    group = open_group(suspect_after_s=SHORT_S)
    with KnownLoad(group.pipeline.bootstrap, group.topic, lambda _: BUSY), group.controller() as control:
        group.wait_read(frozenset(group.wait_settled(2).current))
        several_deaths_at_once(group)
        first, second = readers_of(group.look())
        pause(group, second)
        silence(group, second)
        assert second not in readers_of(group.look())
        process = twin(group, first)
        (third,) = {*readers_of(group.look())} - {first}
        death(group, third)
        there = {line.consumer for line in group.look().consumers}
        assert {second, third} & there, "the number of one that has ended is used again"
        assert ended(control) == 0, group.tail()
    group.assert_complete()
    process.terminate()
