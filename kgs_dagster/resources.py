"""Resources of a rebalance run: what it was asked for, and the connections that all its steps share.

One controller lives through all steps of a run, which is why they run in one process: see `jobs.rebalance`.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from kgs_core.runtime.controller_loop import controller_options
from kgs_dagster.launch import DagsterFleet
from kgs_dagster.run_process import claim_run
from kgs_dagster.settings import GroupConfig

if TYPE_CHECKING:
    from kgs_core.runtime.rebalance_ports import Reference, RunPorts
    from kgs_core.runtime.rebalance_run import RebalanceRun

UNFINISHED = ".dagster/kgs-unfinished"
"""Of a rebalance run whose change is not carried out, though nothing went wrong: no reason to wait with the next."""
Connect = Callable[[GroupConfig, dg.DagsterInstance], AbstractContextManager["RunPorts"]]


class RebalanceConfig(dg.Config):
    """Configuration of a rebalance run; by hand, all of it can be left out."""

    measurement_offset: int | None = Field(
        default=None,
        description="Offset of the measurement in monitor.writeSpeed to pack by. None: the newest, or its own.",
    )
    reason: str = Field(default="asked for by hand", description="Why the run was requested.")
    attempt: int = Field(default=1, description="1, plus the number of failed runs before it.")
    applies_plan: bool = Field(
        default=True,
        description="Carry out what the packer wants, as `kgs plan --apply` does. False: only what is due, as "
        "requested by the sensor.",
    )
    packs: bool = Field(default=True, description="False: carry out the present Target, without any measurement.")
    written: int | None = Field(
        default=None,
        description="Offset of the urgent Target that the sensor has already written: this run continues from "
        "there, and records the change. None: this run writes it.",
    )
    report_offset: int | None = Field(default=None, description="Offset of the newest report at the request, if known.")
    report_age_s: float = Field(default=0.0, description="Age of that report.")

    def reference(self) -> "Reference":
        """The measurement and report that the request refers to."""
        from kgs_core.runtime.rebalance_ports import Reference

        return Reference(
            self.measurement_offset, self.report_offset, self.report_age_s, packs=self.packs, written=self.written
        )


class Rebalance:
    """State that the steps of one run share.

    Attributes:
        measured_s: when the measurement was made that this run packs by, seconds since 1970; None: not looked at here.
        written_s: when the Target that this run has written was, by the brokers' clock; None: it has written none.
    """

    def __init__(self, group: GroupConfig, config: RebalanceConfig, ports: "RunPorts") -> None:
        self._group = group
        self._ports = ports
        self._run: RebalanceRun | None = None
        self._is_claimed = False
        self.config = config
        self.measured_s: float | None = None
        self.written_s: float | None = None

    def claim(self, instance: dg.DagsterInstance, run_id: str) -> None:
        """Write this process on the run, when its first step begins: see `run_process.claim_run`.

        Raises:
            Failure: the run was given up meanwhile.
        """
        if not self._is_claimed:
            claim_run(instance, run_id)
            self._is_claimed = True

    @property
    def run(self) -> "RebalanceRun":
        """The one controller of this run."""
        if self._run is None:
            from kgs_core.runtime.rebalance_run import RebalanceRun

            options = replace(controller_options(self._group.settings), applies_plan=self.config.applies_plan)
            self._run = RebalanceRun(self._group.name, options, self.config.reference(), self._ports)
        return self._run


def rebalance_key(group: GroupConfig) -> str:
    """Name of the resource."""
    return f"rebalance{group.suffix}"


@contextmanager
def connect(group: GroupConfig, instance: dg.DagsterInstance) -> Iterator["RunPorts"]:
    """Kafka, connected to when it is first asked, and Dagster's runs."""
    from kgs_core.group.topics.connections import GroupConnections
    from kgs_core.monitor.kafka.feed import MeasurementFeed
    from kgs_core.runtime.rebalance_ports import RunPorts

    with GroupConnections(group.settings) as topics, closing(MeasurementFeed(group.settings)) as feed:
        yield RunPorts(topics, DagsterFleet(instance, group), feed)


def control_resources(group: GroupConfig, connect: Connect = connect) -> dict[str, Any]:
    """The resource of rebalance runs, by its name. Its configuration says what the run is asked for."""

    @dg.resource(
        config_schema=RebalanceConfig.to_config_schema(),
        description="The controller of one rebalance run, and its request.",
    )
    def rebalance(context: dg.InitResourceContext) -> Iterator[Rebalance]:
        config = RebalanceConfig(**context.resource_config)
        instance = context.instance
        if instance is None:
            raise dg.DagsterInvariantViolationError("a rebalance needs an instance of Dagster")
        with connect(group, instance) as ports:
            yield Rebalance(group, config, ports)

    return {rebalance_key(group): rebalance}
