"""The group's people and its controller: pauses, replacements, more partitions, controllers that die or are two."""

import os
import signal
import subprocess
import time
from contextlib import suppress

import psutil
import yaml
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from tests.system.chaos.controls import BareControl, DagsterControl
from tests.system.chaos.faults.consumers import frozen
from tests.system.chaos.nemesis import Fault, Heal, Nemesis
from tests.system.chaos.stage import Stage

MAX_PARTITIONS = 6
ASKED_S = 20.0
ANSWER_S = 8.0
UPKEEP_S = (0.5, 6.0)


def replace_everybody(nemesis: Nemesis) -> Heal:
    """What was refused or not answered is said again: till then nobody joins with the file as it is now."""
    config = nemesis.stage.pipeline.config
    tree = yaml.safe_load(config.read_text())
    nemesis.stage.versions += 1
    tree["consumer"]["wait_time_s"] = 0.1 + nemesis.stage.versions / 1000
    new = config.with_suffix(".new")
    new.write_text(yaml.safe_dump(tree))
    new.replace(config)
    nemesis.stage.run("replace", "--timeout", "5")
    return lambda: _say_until_it_is_taken(nemesis, "replace")


def pause_everybody(nemesis: Nemesis) -> Heal:
    nemesis.stage.run("pause", "--timeout", "5")
    return lambda: _say_until_it_is_taken(nemesis, "resume")


def _say_until_it_is_taken(nemesis: Nemesis, what: str) -> None:
    while nemesis.stage.run(what, "--timeout", "10").returncode != 0:
        nemesis.heal(due=float("inf"))  # the brokers are away as well
        nemesis.stage.control.keep()


def add_a_partition(nemesis: Nemesis) -> None:
    stage = nemesis.stage
    topics = [
        topic for topic, count in stage.partitions.items() if count < MAX_PARTITIONS and topic != stage.unclean_topic
    ]
    if not topics:
        return
    topic = nemesis.random.choice(sorted(topics))
    there = len(stage.admin.list_topics(topic, timeout=8).topics[topic].partitions)
    if there == stage.partitions[topic]:  # else an answer was lost, and it is there
        there += 1
        stage.admin.create_partitions([NewPartitions(topic, there)], request_timeout=8)[topic].result()
    stage.partitions[topic] = there


def upkeep(nemesis: Nemesis) -> None:
    """`kgs maintain` beside everything, killed in the middle of it now and then."""
    stage = nemesis.stage
    with (stage.folder / "commands.log").open("ab") as log:
        run = subprocess.Popen(stage.pipeline.command("maintain"), stdout=log, stderr=log, start_new_session=True)
    with suppress(subprocess.TimeoutExpired):
        run.wait(nemesis.random.uniform(*UPKEEP_S))
    run.kill()
    run.wait(10)


def delete_group_offsets(nemesis: Nemesis) -> None:
    """They are a report only: nobody may miss them.

    By a client that ends before its requests do: librdkafka 2.16 uses freed memory when a group's coordinator is back
    after a request to it has timed out (`rd_kafka_coord_req_fail` after `rd_kafka_admin_coord_request`).
    """
    admin = AdminClient({"bootstrap.servers": nemesis.stage.kafka.bootstrap_servers, "log_level": 2})
    names = [each.group_id for each in admin.list_consumer_groups(request_timeout=8).result().valid]
    futures = admin.delete_consumer_groups(names, request_timeout=60).values() if names else ()
    with suppress(Exception):  # the answer does not matter
        for future in futures:
            future.result(ANSWER_S)


def kill_controller(nemesis: Nemesis) -> None:
    _any(nemesis, BareControl).kill()


def freeze_controller(nemesis: Nemesis) -> Heal:
    return frozen([_any(nemesis, BareControl)])


def start_a_second_controller(nemesis: Nemesis) -> None:
    control = nemesis.stage.control
    assert isinstance(control, BareControl)
    if len(control.lives) != 1:
        raise LookupError
    control.start()


def freeze_controller_and_start_another(nemesis: Nemesis) -> Heal:
    """The first wakes up as one that was fenced."""
    control = nemesis.stage.control
    assert isinstance(control, BareControl)
    thaw = frozen([_any(nemesis, BareControl)])
    control.start()
    return thaw


def kill_daemon(nemesis: Nemesis) -> None:
    _process(nemesis, "daemon").kill()


def freeze_daemon(nemesis: Nemesis) -> Heal:
    return frozen([_process(nemesis, "daemon")])


def kill_code_server(nemesis: Nemesis) -> None:
    """The process alone: the runs that it has started live on."""
    os.kill(_process(nemesis, "code-server").pid, signal.SIGKILL)


def kill_webserver(nemesis: Nemesis) -> None:
    _process(nemesis, "webserver").kill()


def kill_a_rebalance(nemesis: Nemesis) -> None:
    """The next one goes on where it stood."""
    control, deadline = nemesis.stage.control, time.monotonic() + ASKED_S
    assert isinstance(control, DagsterControl)
    while not (runs := control.rebalances()):
        if time.monotonic() > deadline:
            raise LookupError
        time.sleep(0.2)
    runs[0].kill()


def _any(nemesis: Nemesis, _: type[BareControl]) -> psutil.Process:
    processes = nemesis.stage.control.processes()
    return processes[nemesis.random.choice(sorted(processes))]


def _process(nemesis: Nemesis, name: str) -> psutil.Process:
    return nemesis.stage.control.processes()[name]


def _is_bare(stage: Stage) -> bool:
    return stage.options.control == "bare"


def _is_dagster(stage: Stage) -> bool:
    return stage.options.control == "dagster"


_BARE = (kill_controller, freeze_controller, start_a_second_controller, freeze_controller_and_start_another)
_DAGSTER = (kill_daemon, freeze_daemon, kill_code_server, kill_webserver, kill_a_rebalance)
FAULTS = (
    Fault(replace_everybody, "group", alone="people"),
    Fault(pause_everybody, "group", alone="people", excused_s=20.0),
    Fault(add_a_partition, "group"),
    Fault(upkeep, "group"),
    Fault(delete_group_offsets, "group"),
    *(Fault(strike, "controller", fits=_is_bare, alone="controller") for strike in _BARE),
    *(Fault(strike, "dagster", fits=_is_dagster, alone="controller") for strike in _DAGSTER),
)
