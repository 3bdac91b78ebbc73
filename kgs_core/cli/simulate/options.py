"""Options of `kgs simulate`: from the command line to a grid of runs, every problem named."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from kgs_core.api.replays import check_plot, comparison_grid
from kgs_core.config.classes import MAX_CAPACITY
from kgs_core.config.file import load_settings
from kgs_core.config.packing import PackingSettings
from kgs_core.config.settings import MASTER, SparkSettings
from kgs_core.errors import ConfigError
from kgs_core.experiments.grid import Grid
from kgs_core.lake.files.stored_path import AnyPath
from kgs_core.monitor.speeds.recorded import parse_measurements
from kgs_core.packing import ALGORITHMS, DEFAULT_CONSUMER_WEIGHT, WEIGHING, front_of, parse_name, setting_name
from kgs_core.planning.learnt_capacity import Learnt, capacity_of
from kgs_core.reporting.capacity import capacity_line
from kgs_core.simulation.baselines import baseline_usage, find_baseline
from kgs_core.simulation.latency import LatencySettings
from kgs_core.simulation.recorded import json_lines, recorded_workload
from kgs_core.simulation.replay import Conditions
from kgs_core.simulation.workload import DEFAULT_CAPACITY, DELTAS, STARTS, Start, StreamSpec, Workload
from kgs_core.system.files import check_writable, read_text, write_whole
from kgs_core.system.first_capacity import first_flat_out
from kgs_core.system.moments import moment_of

MAX_DELTA = 100
FRONT_PACKER = "search"
_ALL = "all"
_WITH_SETTING = f"{' and '.join(sorted(WEIGHING))} also with a setting, as search@0.8 or search@fewest"
_GENERATED = ("deltas", "starts", "steps", "partitions", "topics", "seed", "seeds")
_COMPANY = (
    ("until", "--until", "--since"),
    ("saved_file", "--save-speeds", "--since"),
)
_OPTION = {"deltas": "--delta", "starts": "--start"}


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """The command line. Attributes are named after the options; None: not given."""

    algorithms: tuple[str, ...]
    more_algorithms: tuple[str, ...]
    partitions: int
    topics: int
    deltas: str
    starts: str
    steps: int
    seed: int
    seeds: int
    speeds_file: AnyPath | None
    since: str | None
    until: str | None
    capacity: float | None
    latency: bool
    baselines: tuple[str, ...]
    orders: int
    interval_s: float
    front: bool
    cbs: bool
    as_json: bool
    plot_file: Path | None
    results_file: AnyPath | None
    saved_file: AnyPath | None
    spark_master: str | None
    config_file: Path


@dataclass(frozen=True, slots=True)
class Request:
    """Request of what to run and what to show of it.

    Attributes:
        names: algorithms and baselines to show; the grid may have more, which CBS needs.
        hint: which capacity a recorded load is packed by; empty: the options say it.
    """

    grid: Grid
    names: tuple[str, ...]
    hint: str = ""


def make_request(given: SimulateOptions, named: Collection[str], environ: Mapping[str, str]) -> Request:
    """What the command line asks for; `named` are the options that were given, by attribute. Refuses all in one go.

    Raises:
        ConfigError: what cannot be, everything in one go as far as the options alone tell.
    """
    _check(given, named)
    names = (*algorithm_names(given), *_baselines(given))
    capacity, note = _capacity(given, environ)
    conditions = Conditions(capacity, LatencySettings(interval_s=given.interval_s), given.latency)
    recorded = _recorded(given, capacity, environ)
    loads: list[StreamSpec | str] = [recorded.key] if recorded is not None else [*_specs(given)]
    there = {recorded.key: recorded} if recorded is not None else {}
    grid = comparison_grid(names, loads, conditions, there, cbs=given.cbs, orders=given.orders)
    return Request(grid, names, note)


def algorithm_names(given: SimulateOptions) -> tuple[str, ...]:
    """The algorithms asked for, each once, in the order given."""
    asked = (*given.algorithms, *given.more_algorithms)
    listed = _split(asked)
    if asked and not listed:
        raise ConfigError([f"--algorithm: empty: write {', '.join(ALGORITHMS)} or all; {_WITH_SETTING}"])
    listed = listed or ([] if given.front else [_ALL])
    names = [name for entry in listed for name in (ALGORITHMS if entry == _ALL else (entry,))]
    wrong = [name for name in names if parse_name(name) is None]
    if wrong:
        known = f"write {', '.join(ALGORITHMS)} or all; {_WITH_SETTING}"
        raise ConfigError([f"--algorithm: '{name}': {known}" for name in wrong])
    if given.front:
        names += front_of(FRONT_PACKER)
    # The price that an algorithm has by itself, written out, would be the same once more, by other random numbers
    twice = {setting_name(name, DEFAULT_CONSUMER_WEIGHT) for name in names if name in WEIGHING}
    return tuple(dict.fromkeys(name for name in names if name not in twice))


def _baselines(given: SimulateOptions) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(_split(given.baselines)))
    if wrong := [name for name in names if find_baseline(name) is None]:
        raise ConfigError([f"--baseline: '{name}': write {baseline_usage()}, with commas between" for name in wrong])
    return names


def spark_settings(master: str, config_file: Path, environ: Mapping[str, str]) -> SparkSettings:
    """On what to run: on `master`, unless that is empty, else as the configuration says, else on all cores here."""
    configured = load_settings(config_file, environ).spark if config_file.exists() else SparkSettings.on("local[*]")
    return configured.model_copy(update={"settings": {**configured.settings, MASTER: master}}) if master else configured


def _check(given: SimulateOptions, named: Collection[str]) -> None:
    problems = [*_wrong_company(given, named), *_wrong_numbers(given)]
    if given.plot_file is not None:
        problems += _problems_of(partial(check_plot, "--plot", given.plot_file))
    if given.results_file is not None:
        problems += _problems_of(partial(check_writable, "--results", given.results_file))
    for check in (algorithm_names, _baselines, _deltas, _starts, _specs):
        problems += _problems_of(partial(check, given))
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))


def _wrong_company(given: SimulateOptions, named: Collection[str]) -> Iterator[str]:
    sources = [option for option, value in (("--speeds", given.speeds_file), ("--since", given.since)) if value]
    if len(sources) > 1:
        yield "--since: names a load, and so does --speeds: leave out one of them"
    for name in _GENERATED:
        if sources and name in named:
            option = _OPTION.get(name, f"--{name}")
            yield f"{option}: shapes a generated load: leave it out, or leave out {sources[0]}"
    for name, option, needs in _COMPANY:
        if name in named and needs not in sources:
            yield f"{option}: needs {needs}: give both, or neither"


def _wrong_numbers(given: SimulateOptions) -> Iterator[str]:
    for option, value in (
        ("--capacity", given.capacity),
        ("--interval", given.interval_s),
    ):
        if value is not None and not 0 < value <= MAX_CAPACITY:
            yield f"{option}: {value:g}: give a number above 0, at most {MAX_CAPACITY:g}"


def _problems_of(check: Callable[[], object]) -> tuple[str, ...]:
    try:
        check()
    except ConfigError as e:
        return e.problems
    return ()


def _specs(given: SimulateOptions) -> list[StreamSpec]:
    if given.topics > given.partitions:
        raise ConfigError([f"--topics: {given.topics}: at most one for each partition ({given.partitions})"])
    return [
        StreamSpec(delta, start, seed, given.steps, given.partitions, given.topics)
        for start in _starts(given)
        for delta in _deltas(given)
        for seed in range(given.seed, given.seed + given.seeds)
    ]


def _deltas(given: SimulateOptions) -> list[int]:
    entries = map(str, DELTAS) if given.deltas == _ALL else _split([given.deltas]) or [""]
    return list(dict.fromkeys(map(_delta, entries)))


def _starts(given: SimulateOptions) -> list[Start]:
    entries = STARTS if given.starts == _ALL else _split([given.starts]) or [""]
    return list(dict.fromkeys(map(_start, entries)))


def _delta(entry: str) -> int:
    if entry.isascii() and entry.isdigit() and int(entry) <= MAX_DELTA:
        return int(entry)
    raise ConfigError([f"--delta: '{entry}': write whole per cents from 0 to {MAX_DELTA}, or all"])


def _start(entry: str) -> Start:
    for start in STARTS:
        if entry == start:
            return start
    raise ConfigError([f"--start: '{entry}': write {', '.join(STARTS)} or all"])


def _split(entries: Sequence[str]) -> list[str]:
    return [part.strip() for entry in entries for part in entry.split(",") if part.strip()]


def _capacity(given: SimulateOptions, environ: Mapping[str, str]) -> tuple[float, str]:
    """C, bytes/s, and where that of a recorded load comes from; empty where the options say it."""
    if given.capacity or not (given.speeds_file or given.since):
        return given.capacity or DEFAULT_CAPACITY, ""
    packing = load_settings(given.config_file, environ).packing if given.config_file.exists() else PackingSettings()
    found = capacity_of(packing, Learnt(), None, first_flat_out() if packing.learns_capacity else None)
    return found.packing.packing_capacity, f"{capacity_line(found)}; --capacity names another"


def _recorded(given: SimulateOptions, capacity: float, environ: Mapping[str, str]) -> Workload | None:
    if given.speeds_file is not None:
        measurements = parse_measurements(read_text(given.speeds_file), str(given.speeds_file))
        return recorded_workload(given.speeds_file.stem, measurements, capacity)
    if given.since is None:
        return None
    since, until = moment_of("--since", given.since), datetime.now(UTC)
    if given.until is not None:
        until = moment_of("--until", given.until)
    from kgs_core.monitor.kafka.recorded_load import load_recorded

    settings = load_settings(given.config_file, environ)
    found = load_recorded(settings, _ms(since), _ms(until), given.interval_s)
    if given.saved_file is not None:
        check_writable("--save-speeds", given.saved_file)
        write_whole(given.saved_file, json_lines(found).encode())
    return recorded_workload(f"{settings.group}-{since:%Y%m%dT%H%M%SZ}", found, capacity)


def _ms(moment: datetime) -> int:
    return max(0, round(moment.timestamp() * 1000))
