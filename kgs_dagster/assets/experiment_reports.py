"""Reports of experiments: all experiment runs side by side, and the front; tables and a plot.

They take what experiment runs there are. What is missing is named, and never counts as nothing.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from kgs_core.model import grouped
from kgs_dagster.assets import experiment_figures as figures
from kgs_dagster.assets.experiments import GROUP_NAME, PACKING_RUN, code_version
from kgs_dagster.experiment_resource import ExperimentResource
from kgs_dagster.metadata import bullets
from kgs_dagster.run_process import failures_named

if TYPE_CHECKING:
    from kgs_core.experiments.store import ExperimentFolder
    from kgs_core.simulation.charts import Chart
    from kgs_core.simulation.comparison import Summary
    from kgs_core.simulation.groups import SeedGroup

SUMMARY = dg.AssetKey([GROUP_NAME, "algorithm_summary"])
FRONT = dg.AssetKey([GROUP_NAME, "pareto_front"])
COMPLETE = "no_run_missing"
FOLLOWS = (
    dg.AutomationCondition.any_deps_updated()
    & ~dg.AutomationCondition.any_deps_in_progress()
    & ~dg.AutomationCondition.in_progress()
)
"""A report is made again once the runs that it is about are over, where Dagster's automation sensor is switched on.

Not `eager`: a report takes what there is, and would wait for ever for each run of the grid that nobody has asked for.
"""
_COLUMNS = (
    *("cbs", "average_rscore", "mean_consumers", "least_consumers", "moved_partitions"),
    *("mean_latency_s", "p95_latency_s", "p99_latency_s", "p90_delayed_latency_s", "delayed_share"),
    *("consumer_hours", "least_consumer_hours", "rscore_total", "bytes_delayed"),
)


def report_assets() -> list[dg.AssetsDefinition]:
    """The summary, and the front that is made of it."""
    return [_summary(), _front()]


def _summary() -> dg.AssetsDefinition:
    @dg.asset(
        key=SUMMARY,
        code_version=code_version(),
        automation_condition=FOLLOWS,
        deps=[PACKING_RUN],
        check_specs=[
            dg.AssetCheckSpec(COMPLETE, asset=SUMMARY, description="Every algorithm with a run has one on every load.")
        ],
        description="All runs side by side: means over seeds for each algorithm and load. CBS compares with the best "
        "of the twelve published algorithms, and is known if all of them have replayed a load.",
        group_name=GROUP_NAME,
        kinds={"parquet"},
    )
    def algorithm_summary(
        context: dg.AssetExecutionContext, kgs_experiment_resource: ExperimentResource
    ) -> Iterator[dg.MaterializeResult[None]]:
        from kgs_core.simulation.groups import groups_of

        folder = kgs_experiment_resource.open(context.instance)
        with failures_named():
            found = folder.summaries()
            if not found:
                raise dg.Failure(f"no experiment run in {folder.root}: run packing_run first", allow_retries=False)
            path = folder.save_summaries(found)
        missing = _missing(found)
        without = list(dict.fromkeys(one.workload for one in found if one.cbs is None))
        yield dg.MaterializeResult(
            metadata={
                "runs": len(found),
                "missing_cells": len(missing),
                "workloads": len({one.workload for one in found}),
                "algorithms": len({one.name for one in found}),
                "summary": figures.table(figures.group_rows(groups_of(found), _COLUMNS), figures.columns_of(_COLUMNS)),
                "missing": figures.table(missing, {"algorithm": "string", "workload": "string"}),
                "without_cbs": ", ".join(without) or "none: all published algorithms have replayed every load",
                "path": dg.MetadataValue.path(str(path)),
            },
            check_results=[_complete(missing)],
        )

    return algorithm_summary


def _front() -> dg.AssetsDefinition:
    @dg.asset(
        key=FRONT,
        code_version=code_version(),
        automation_condition=FOLLOWS,
        deps=[SUMMARY],
        description="Consumers against Rscore: for each load the algorithms that no other beats in both, joined by "
        "a line; `search` also at several prices of a consumer, as search@0.8. "
        "Baselines, which overload consumers, are never on it.",
        group_name=GROUP_NAME,
        kinds={"svg"},
    )
    def pareto_front(
        context: dg.AssetExecutionContext, kgs_experiment_resource: ExperimentResource
    ) -> dg.MaterializeResult[None]:
        folder = kgs_experiment_resource.open(context.instance)
        with failures_named():
            return dg.MaterializeResult(metadata=_compared(folder))

    return pareto_front


def _draw(load: str, groups: "Sequence[SeedGroup]") -> "Chart":
    from kgs_core.packing import parse_name
    from kgs_core.simulation.groups import front_of
    from kgs_core.simulation.plots import front_chart

    packers = [group for group in groups if parse_name(group.name)]
    return front_chart(load, packers, front_of(packers))


def _compared(folder: "ExperimentFolder") -> dict[str, Any]:
    """What can be compared: drawn, and as a table; and what cannot."""
    from kgs_core.simulation.groups import comparable, front_of, groups_of, with_enough_consumers

    by_load = grouped((group.load, group) for group in groups_of(folder.load_summaries()))
    loads = {load: comparable(groups) for load, groups in by_load.items()}
    left_out = [
        f"{run.name} on {run.workload}"
        for load, groups in by_load.items()
        for run in _runs(groups)
        if run not in _runs(loads[load])
    ]
    enough = {load: with_enough_consumers(groups) for load, groups in loads.items()}
    panels = [_draw(load, groups) for load, groups in enough.items() if groups]
    drawn = figures.plots([panel for panel in panels if panel.dots], lambda svg: folder.save_plot(FRONT.path[-1], svg))
    about = bullets(left_out) if left_out else "nothing: all have replayed the same seeds"
    fronts: list[figures.Row] = [
        {"load": load, "seeds": len(groups[0].runs), "front": ", ".join(front_of(groups))}
        for load, groups in loads.items()
    ]
    columns = {"load": "string", "seeds": "int", "front": "string"}
    found = {**drawn, "fronts": figures.table(fronts, columns), "left_out": dg.MetadataValue.md(about)}
    too_few = [f"{one.name} on {load}" for load, groups in loads.items() for one in groups if one not in enough[load]]
    if too_few:
        found["not_drawn"] = f"too few consumers for the load: {', '.join(too_few)}"
    return found


def _runs(groups: "Sequence[SeedGroup]") -> "list[Summary]":
    return [run for group in groups for run in group.runs]


def _missing(found: "Sequence[Summary]") -> list[figures.Row]:
    """Experiment runs that there are not: of an algorithm that was run at all, on a load that was run at all."""
    there = {(one.name, one.workload) for one in found}
    names, loads = ({one.name: None for one in found}, {one.workload: None for one in found})
    return [{"algorithm": n, "workload": w} for n in names for w in loads if (n, w) not in there]


def _complete(missing: Sequence[figures.Row]) -> dg.AssetCheckResult:
    some = ", ".join(f"{row['algorithm']} on {row['workload']}" for row in missing[:10])
    what = f"{len(missing)} missing: {some}{', ...' if missing[10:] else ''}" if missing else "none is missing"
    return dg.AssetCheckResult(
        passed=not missing,
        check_name=COMPLETE,
        asset_key=SUMMARY,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"missing": what},
    )
