"""One demonstration from nothing to its final report."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from kgs_core.config import Settings
from kgs_core.config.file import load_settings
from kgs_core.demo.bare_control import BareControl
from kgs_core.demo.dagster_control import DagsterControl
from kgs_core.demo.display import Display
from kgs_core.demo.final_report import FinalReport, close, group_lines, report_table, verdict
from kgs_core.demo.flights import find_data
from kgs_core.demo.layout import Layout
from kgs_core.demo.observer import Observer
from kgs_core.demo.outside_control import OutsideControl, create_demo_topics
from kgs_core.demo.replay import PARTITIONS, TOPICS
from kgs_core.demo.stages import Stages
from kgs_core.demo.supervisor import GroupControl, Supervisor
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import ConfigError, PermanentError
from kgs_core.group.topics.topics import create_topics
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.lake.topics.stats import LakeView
from kgs_core.runtime.group_status import GroupWatch
from kgs_core.runtime.metrics_service import metrics_served
from kgs_core.system.shutdown import stop_on_signals
from kgs_core.system.tcp_ports import HOST

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Options of a demonstration.

    Attributes:
        directory: where everything is kept; a temporary one when None.
        seconds: how long to run after the first row has arrived; None: until interrupted.
        bare: `kgs control` looks after the group, and no Dagster.
        config_file: of a group that is controlled already, on a Kafka and a lake that are there; None: all is started.
    """

    directory: Path | None
    seconds: float | None
    time_factor: float
    keep: bool
    bare: bool = False
    config_file: Path | None = None


def run_demo(options: DemoOptions, console: Console) -> int:
    """Runs a demonstration; returns the exit status.

    0: everything that was produced is in the lake exactly once; or, without a time, it was interrupted and ended in
    order. 1: something is lost, doubled or went wrong, or a process has died for good; 130: interrupted before that
    could be seen.

    Raises:
        KgsError: it could not be set up.
    """
    find_data()  # before anything is started: without it no record would ever come
    display = Display(console, time.monotonic())
    directory = _fresh_directory(options.directory)
    display.say(f"everything is kept in {directory}; Ctrl-C ends it")
    status = 1
    try:
        status = _Demo(options, directory, display, console).run()
    except KeyboardInterrupt:  # while something was being started; later a flag is set instead
        display.say("interrupted, all processes ended")
        status = INTERRUPTED
    finally:
        if options.directory is None and not options.keep and status in (0, INTERRUPTED):
            shutil.rmtree(directory, ignore_errors=True)
            display.say(f"removed {directory} (--keep keeps it)")
        else:
            display.say(f"logs, tables and Kafka's data stay in {directory}")
    return status


class _Demo:
    """The stages, one after the other."""

    def __init__(self, options: DemoOptions, directory: Path, display: Display, console: Console) -> None:
        self._options = options
        self._display = display
        self._console = console
        self._started_s = time.monotonic()
        self._layout = Layout(directory, options.time_factor)

    def run(self) -> int:
        say, layout = self._display.say, self._layout
        with ExitStack() as held:
            layout.temporary.mkdir()
            environ = layout.environ(os.environ)
            kafka: EmbeddedKafka | None = None
            if self._options.config_file is not None:
                settings = self._use_what_is_there(self._options.config_file)
            else:
                kafka = held.enter_context(self._broker())
                settings = self._prepare(kafka, environ)
            group = held.enter_context(GroupWatch(settings))
            control = self._control(settings, environ)
            servers = settings.kafka.bootstrap_servers
            with (
                Supervisor(layout, servers, control, environ, say, kafka=kafka) as supervisor,
                metrics_served(settings, HOST, 0) as port,
            ):
                supervisor.start()
                say(control.invitation)
                say(f"metrics for Prometheus: http://{HOST}:{port}/metrics")
                elapsed_s = time.monotonic() - self._started_s
                observer = Observer(self._layout, LakeView(settings), group, control, elapsed_s)
                return self._play(settings, supervisor, observer)

    @contextmanager
    def _broker(self) -> Iterator[EmbeddedKafka]:
        say = self._display.say
        say("starting a Kafka broker (KRaft mode, no ZooKeeper)")
        with EmbeddedKafka.start(self._layout.directory / "kafka", log=say) as kafka:
            say(f"the broker serves at {kafka.bootstrap_servers} (pid {kafka.nodes[0].pid})")
            yield kafka

    def _control(self, settings: Settings, environ: Mapping[str, str]) -> GroupControl:
        if self._options.config_file is not None:
            return OutsideControl()
        return (BareControl if self._options.bare else DagsterControl)(
            self._layout, settings, environ, self._display.say
        )

    def _use_what_is_there(self, config_file: Path) -> Settings:
        settings = load_settings(config_file, os.environ)
        create_demo_topics(settings)
        self._display.say(f"group '{settings.group}' on {settings.kafka.bootstrap_servers}, lake {settings.lake.root}")
        return settings

    def _prepare(self, kafka: EmbeddedKafka, environ: Mapping[str, str]) -> Settings:
        """Configuration and topics."""
        layout = self._layout
        admin = KafkaAdmin({"bootstrap.servers": kafka.bootstrap_servers})
        for topic in TOPICS:
            admin.create_topic(topic, PARTITIONS, 1, {})
        self._display.say(f"topics {', '.join(TOPICS)}, {PARTITIONS} partitions each")
        layout.config_file.write_text(layout.configuration(kafka.bootstrap_servers))
        settings = load_settings(layout.config_file, environ)
        create_topics(settings, admin)  # the controller would; but the group is watched from the beginning
        return settings

    def _play(self, settings: Settings, supervisor: Supervisor, observer: Observer) -> int:
        display = self._display
        with stop_on_signals() as stop, display:
            stages = Stages(supervisor, observer, display, stop)
            problems = stages.play(self._options.seconds)
            interrupted = stop.is_set
        with stop_on_signals() as interrupt:  # a second Ctrl-C kills what has not ended yet
            display.say(
                "interrupted: ending everything in order" if interrupted else "ending the consumers and all else"
            )
            if interrupted and stages.has_begun:
                with display:
                    stages.wind_down(interrupt)
            problems += supervisor.end(interrupt)
        # From here on a Ctrl-C is an exception again: only reading is left to do.
        timed = self._options.seconds is not None
        last = observer.look("ended")
        report = close(settings, last, display.say, problems, with_log=timed and not interrupted)
        self._console.print(report_table(report), highlight=False)
        for line in (*group_lines(last.figures), *verdict(report)):
            display.say(line)
        return exit_status(report, timed=timed, interrupted=interrupted)


def exit_status(report: FinalReport, *, timed: bool, interrupted: bool) -> int:
    """0 for a proof, or for an end in order where none was asked for; see `run_demo`."""
    if report.is_exact or (not timed and not report.is_wrong):
        return 0
    return INTERRUPTED if interrupted and not report.is_wrong else 1


def _fresh_directory(wanted: Path | None) -> Path:
    """An empty directory, `wanted` or a temporary one."""
    if wanted is None:
        return Path(tempfile.mkdtemp(prefix="kgs-demo-")).resolve()
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        if any(wanted.iterdir()):
            raise ConfigError([f"--directory: {wanted}: is not empty: name another one"])
    except OSError as e:
        raise PermanentError(f"--directory: {wanted}: {e.strerror}: name another one") from e
    return wanted.resolve()
