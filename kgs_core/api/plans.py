"""`plan`: consumers that a group's load needs, who reads what, and what the change costs, as `kgs plan` shows it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from html import escape
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from kgs_core.api.broker_settings import broker_settings
from kgs_core.api.configuration import Config, settings_of
from kgs_core.api.values import (
    Partition,
    PerPartition,
    assignment_frame,
    consumers_by_partition,
    number_of,
    plain_keys,
    speeds_by_partition,
)
from kgs_core.config import PackingSettings, Settings, resolve_tables
from kgs_core.config.classes import MAX_CAPACITY
from kgs_core.errors import ConfigError
from kgs_core.group.controller.capacity import capacity_seen
from kgs_core.group.controller.plan_request import FORCED_ONLY
from kgs_core.group.view.group_view import GroupView
from kgs_core.lake.files.stored_path import named_path
from kgs_core.model import WriteSpeeds
from kgs_core.monitor.speeds.recorded import parse_assignment, parse_measurements
from kgs_core.packing import ALGORITHMS, WEIGHING, front_of
from kgs_core.planning.group import Group
from kgs_core.planning.group_load import GroupLoad
from kgs_core.planning.learnt_capacity import Capacity, Learnt, capacity_of
from kgs_core.planning.load import Load
from kgs_core.planning.plan import Plan, make_plan
from kgs_core.planning.triggers import Watched, exit_conditions, is_forced, judge
from kgs_core.reporting.capacity import capacity_values
from kgs_core.reporting.group_load import group_sentences, group_values
from kgs_core.reporting.plan_json import plan_values
from kgs_core.system.files import read_text
from kgs_core.system.first_capacity import first_flat_out

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_CONFIG = Path("kgs.yaml")
"""Where nothing else is named, and if it is there."""
TARGET = "target"


@dataclass(frozen=True, slots=True)
class PlanReport(Plan):
    """A plan and what it was made from: what `kgs plan` shows.

    Attributes:
        learnt: the capacity that was packed by, where it comes from, and what the group's consumers read.
        seen: a group that kgs does not read by, as it is now; None: it is the configuration's own.
    """

    learnt: Capacity = field(default_factory=lambda: capacity_of(PackingSettings(), Learnt(), None))
    seen: GroupLoad | None = None

    @property
    def speeds(self) -> WriteSpeeds:
        """Write speeds as far as they are known, bytes/s."""
        return self.measured.speeds

    @property
    def assignment(self) -> dict[Partition, int]:
        """(topic, number) -> consumer, as `pack` gives and takes it."""
        return plain_keys(self.target)

    @property
    def advice(self) -> list[str]:
        """What the plan would change of a group that kgs does not read by, each in one sentence."""
        return [] if self.seen is None else list(group_sentences(self.seen, self, self.learnt.source))

    @property
    def left_out(self) -> int:
        """Partitions that somebody reads and the load does not have."""
        return len(self.group.current.keys() - self.target.keys())

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as `kgs plan --json` prints them; see `capacity_values` and `group_values`."""
        of_group = {} if self.seen is None else {"group": group_values(self.seen, self, self.learnt.source)}
        return plan_values(self) | {"learnt": capacity_values(self.learnt)} | of_group

    def to_frame(self) -> "pd.DataFrame":
        """A row per partition: `consumer`, `bytes_per_s` (NaN: not known), `moves`; the index is `topic`, `partition`.

        What other algorithms would do is `pandas.DataFrame(plan.alternatives)`.
        """
        return assignment_frame(self.target, self.speeds, [move.partition for move in self.moves])

    def _repr_html_(self) -> str:
        headline = f"{self.algorithm}: {self.consumers} consumers, {len(self.moves)} moves, Rscore {self.rscore:.3g}"
        lines = [*self.advice, headline, *(line for line in (self.choice, self.held_back) if line)]
        return f"<p>{'<br>'.join(map(escape, lines))}</p>{self.to_frame().to_html(max_rows=20)}"


def plan(  # noqa: PLR0913 - keywords with defaults
    config: Config | None = None,
    *,
    group: str | None = None,
    bootstrap_servers: str | None = None,
    speeds: PerPartition | str | Path | None = None,
    current: PerPartition | str | Path | None = TARGET,
    compare: Literal["all"] | None = "all",
    algorithm: str | None = None,
    capacity: float | None = None,
    seed: int = 0,
    progress: Callable[[float, float], None] | None = None,
) -> PlanReport:
    """Pack a group's partitions as its controller would now. Changes nothing.

    Args:
        config: of the group; None: `kgs.yaml`, if it is there. Not needed where speeds are given.
        group: group.id of consumers that kgs need not read by, instead: their members are the consumers, and the
            topics are what they read. Without a capacity it is what members read that are behind. Of `config` the
            sections kafka, monitor and packing count; `speeds` and `current` are refused.
        bootstrap_servers: brokers of that group, instead of a configuration.
        speeds: (topic, number) -> bytes/s, or a recorded load, of which the last measurement counts; None: they are
            measured over `monitor.window_s`, or at once where `kgs monitor` publishes. With speeds no broker is asked.
        current: who reads what now: (topic, number) -> consumer, or a file as `kgs plan --current` reads it; None:
            nobody; "target": what the group's controller has decided last, or nobody with `speeds`, which are of no
            group that runs.
        compare: "all": also what other algorithms would do, and other settings of this one.
        algorithm: instead of `packing.algorithm`.
        capacity: packing capacity C of one consumer, bytes/s, instead of what is configured, learnt, or measured here.
        seed: of algorithms that draw numbers: the same input and seed give the same plan.
        progress: is told the seconds measured, and those to measure.

    Raises:
        ConfigError: a configuration, file, name or value that cannot be.
        MeasurementError: a speed that cannot be.
        PortError: Kafka does not answer, or refuses; no topic fits; no such group.
    """
    _check_combination(config, group, bootstrap_servers, is_given=speeds is not None or current != TARGET)
    if group is not None:
        path = DEFAULT_CONFIG if config is None or isinstance(config, Settings) else Path(config)
        named = config if isinstance(config, Settings) else broker_settings(path, bootstrap_servers)
        return _plan_of_group(group, named, _packing(named, algorithm, capacity), compare, seed, progress)
    settings = _settings(config)
    packing = _packing(settings, algorithm, capacity)
    load = _recorded(speeds) if speeds is not None else _measured(settings, progress)
    consumers, moved_rscore, view = _group(settings, current, recorded=speeds is not None)
    first = first_flat_out() if packing.learns_capacity else None
    if view is None:
        learnt = capacity_of(packing, Learnt(), None, first)
    else:
        learnt = capacity_seen(view, packing, load.bytes_per_offset, (), first)
    found = PlanReport(**_fields(load, consumers, learnt, compare, seed))
    if view is not None and view.target is not None and view.target.message.idle is not None:
        return replace(found, held_back="the group is idle: this is for when there is something to read")
    return replace(found, held_back=_held_back(found, load, consumers, moved_rscore, learnt.packing))


def _fields(load: Load, group: Group, learnt: Capacity, compare: Literal["all"] | None, seed: int) -> dict[str, Any]:
    own = learnt.packing.algorithm
    weighed = front_of(own, learnt.packing.weight) if own in WEIGHING else ()
    others = (*ALGORITHMS, *weighed) if compare else ()
    found = make_plan(load, group, learnt.packing, lambda: Random(seed), others)  # noqa: S311 - no secret
    values = {each.name: getattr(found, each.name) for each in fields(found)}
    return {**values, "learnt": learnt}


def _check_combination(
    config: Config | None, group: str | None, bootstrap_servers: str | None, *, is_given: bool
) -> None:
    if group is not None and (not isinstance(group, str) or not group):
        raise ConfigError([f"plan: group {group!r}: give a group.id"])
    if group is not None and is_given:
        raise ConfigError(["plan: group: its speeds and who reads what are looked at: give no speeds, and no current"])
    if bootstrap_servers is not None and (group is None or config is not None):
        raise ConfigError(["plan: bootstrap_servers: only with group, and without a configuration"])


def _plan_of_group(
    group: str,
    settings: Settings,
    packing: PackingSettings,
    compare: Literal["all"] | None,
    seed: int,
    progress: Callable[[float, float], None] | None,
) -> PlanReport:
    from kgs_core.monitor.kafka.group_load import measure_group

    seen, load = measure_group(settings, group, progress)
    # The bounds and spares of kgs.yaml are of its own group
    packing = packing.model_copy(
        update={"spare_consumers": 0, "min_consumers": 1, "max_consumers": None, "classes": {}}
    )
    learnt = Learnt(
        seen.flat_out_bytes_per_s,
        config_hash=f"group {group}",
        consumers=len(seen.flat_out),
        busy_s=settings.monitor.window_s * len(seen.flat_out),
        since_ms=seen.since_ms,
        each=seen.flat_out,
    )
    first = first_flat_out() if packing.learns_capacity and not seen.flat_out else None
    now = Group(seen.current, spares=seen.idle)
    return PlanReport(**_fields(load, now, capacity_of(packing, learnt, None, first), compare, seed), seen=seen)


def _settings(config: Config | None) -> Settings | None:
    if config is None:
        return settings_of(DEFAULT_CONFIG) if DEFAULT_CONFIG.exists() else None
    return settings_of(config)


def _packing(settings: Settings | None, algorithm: str | None, capacity: float | None) -> PackingSettings:
    if capacity is not None and not 1 <= number_of(capacity, "plan: capacity") <= MAX_CAPACITY:
        raise ConfigError([f"plan: capacity {capacity:g}: give bytes/s, from 1 to {MAX_CAPACITY:g}"])
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise ConfigError([f"algorithm '{algorithm}': use one of {', '.join(ALGORITHMS)}"])
    packing = settings.packing if settings is not None else PackingSettings()
    changes: dict[str, object] = {}
    if capacity is not None:
        changes["packing_capacity_bytes_per_s"] = capacity
        written = packing.consumer_capacity_bytes_per_s
        changes["consumer_capacity_bytes_per_s"] = None if written is None else max(capacity, written)
    if algorithm is not None:
        changes["algorithm"] = algorithm
    return packing.model_copy(update=changes)


def _recorded(speeds: PerPartition | str | Path) -> Load:
    if isinstance(speeds, str | Path):
        return Load(parse_measurements(read_text(named_path(speeds)), str(speeds))[-1].speeds)
    return Load(speeds_by_partition(speeds, "speeds"))


def _measured(settings: Settings | None, progress: Callable[[float, float], None] | None) -> Load:
    if settings is None:
        what = f"give a configuration (--config; {DEFAULT_CONFIG} does not exist) or speeds (--from)"
        raise ConfigError([f"plan: nothing to measure: {what}"])
    resolve_tables(settings, [rule.topic for rule in settings.topics if rule.topic])  # consumers would refuse it
    from kgs_core.monitor.kafka.load import measured_load
    from kgs_core.monitor.kafka.monitor import measure

    measurement = measure(settings, progress)
    resolve_tables(settings, {tp.topic for tp in measurement.speeds})
    return measured_load(settings, measurement)


def _group(
    settings: Settings | None, current: PerPartition | str | Path | None, *, recorded: bool
) -> tuple[Group, float, GroupView | None]:
    """The consumers as they are, the Rscore of what has moved within the last hour, and what they report."""
    if current is None or (isinstance(current, str) and current == TARGET and (recorded or settings is None)):
        return Group(), 0.0, None
    if isinstance(current, str) and current == TARGET and settings is not None:
        from kgs_core.runtime.group_status import load_group

        return load_group(settings)
    if isinstance(current, str | Path):
        return Group(parse_assignment(read_text(named_path(current)), str(current))), 0.0, None
    return Group(consumers_by_partition(current, "current")), 0.0, None


def _held_back(found: Plan, load: Load, group: Group, moved_rscore: float, packing: PackingSettings) -> str:
    """Why the controller would let the plan wait, if the group were in order; empty: it would not."""
    watched = Watched(
        target=group.current,
        current=group.current,
        joined=frozenset(group.current.values()) | group.spares,
        failing=group.quarantined,
        since_packing_s=math.inf,
        moved_rscore=moved_rscore,
        classes=group.classes,
        zones=group.zones,
    )
    decision = judge(found, exit_conditions(load, watched, packing), load, watched, packing)
    if decision.plan is None:
        return str(decision.held_back or "")
    return FORCED_ONLY if packing.apply == "forced_only" and not is_forced(decision.conditions) else ""
