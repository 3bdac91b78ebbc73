"""The text and the pictures of docs/experiments.md, from raw results."""

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from kgs_core.cli.simulate.experiments_text import HEAD, LATENCY, SOURCES, STARTS_TEXT
from kgs_core.simulation.charts import Chart, svg
from kgs_core.simulation.comparison import PUBLISHED, Summary, pareto_front
from kgs_core.simulation.plots import CBS, RSCORE
from kgs_core.simulation.published import CLAIMS, NAMES, PUBLISHED_SCORES, Scores
from kgs_core.simulation.workload import DELTAS, OTHER_STARTS_AT, STARTS

OURS, THEIRS, LATE = "experiments-front.svg", "experiments-front-published.svg", "experiments-latency.svg"
_Figure = Callable[[Summary], float | None]


def write_page(runs: Sequence[Summary], late_runs: Sequence[Summary], images: str) -> str:
    """The page; `images` is where the pictures are, seen from it."""
    seeds = len({run.spec.seed for run in runs if run.spec})
    scores = mean_scores(runs, "uniform")
    return "\n".join(
        [
            HEAD.format(seeds=seeds, images=images, ours=OURS, theirs=THEIRS),
            "## The published table, and ours",
            "",
            f"Mean over {seeds} seeds, and their range. The published figures are of one stream each.",
            "",
            *_table_of_scores(runs),
            "## The claims",
            "",
            *_claims(scores),
            "## The front",
            "",
            f"![CBS and mean Rscore, ours]({images}/{OURS})",
            "",
            f"![CBS and mean Rscore, published]({images}/{THEIRS})",
            "",
            *_fronts(scores),
            STARTS_TEXT,
            *_table_of_starts(runs),
            LATENCY,
            *_table_of_latency(late_runs),
            f"![Consumer hours and p99]({images}/{LATE})",
            "",
            SOURCES,
        ]
    )


def pictures(runs: Sequence[Summary]) -> dict[str, str]:
    """The two Pareto plots: file name -> SVG."""
    return {
        OURS: _front_picture(mean_scores(runs, "uniform"), "ours"),
        THEIRS: _front_picture(PUBLISHED_SCORES, "published"),
    }


def late_picture(runs: Sequence[Summary]) -> dict[str, str]:
    """Consumer hours and p99 latency: file name -> SVG."""
    dots = {}
    for name in dict.fromkeys(run.name for run in runs if not run.order):
        mine = [run for run in runs if run.name == name and not run.order]
        hours, late_s = _mean(mine, lambda run: run.consumer_hours), _mean(mine, _late("p99_s"))
        if hours is not None and late_s is not None:
            dots[name] = hours, late_s
    least = fmean(run.least_consumer_hours for run in runs)
    chart = Chart(
        "the bill, mean over seeds",
        "consumer hours",
        "p99 latency, s",
        dots=dots,
        mark=(least, "least"),
        x_from_zero=False,
        scale="log y",
    )
    return {LATE: svg([chart])}


def mean_scores(runs: Iterable[Summary], start: str) -> Scores:
    """Delta above 0 -> algorithm -> means of CBS and E[R] over seeds."""
    found: dict[int, dict[str, list[Summary]]] = {}
    for run in runs:
        if run.spec is not None and run.spec.start == start and run.spec.delta > 0:
            found.setdefault(run.spec.delta, {}).setdefault(run.name, []).append(run)
    return {
        delta: {name: (_mean(mine, _cbs) or 0.0, _mean(mine, _cost) or 0.0) for name, mine in row.items()}
        for delta, row in found.items()
    }


def _cbs(run: Summary) -> float | None:
    return run.cbs


def _cost(run: Summary) -> float | None:
    return run.average_rscore


def _late(name: str) -> _Figure:
    return lambda run: getattr(run.latency, name) if run.latency is not None else None


def _mean(runs: Iterable[Summary], figure: _Figure) -> float | None:
    known = [value for run in runs if (value := figure(run)) is not None]
    return fmean(known) if known else None


def _range(runs: Iterable[Summary], figure: _Figure, digits: int) -> str:
    known = [value for run in runs if (value := figure(run)) is not None]
    if not known:
        return "-"
    low, high = f"{min(known):.{digits}f}", f"{max(known):.{digits}f}"
    return f"{fmean(known):.{digits}f}" + (f" ({low}-{high})" if low != high else "")


def _table_of_scores(runs: Sequence[Summary]) -> list[str]:
    lines = []
    for delta in DELTAS:
        lines += [
            f"### Delta {delta}",
            "",
            "| | CBS, published | CBS, ours | E[R], published | E[R], ours |",
            "|---|---|---|---|---|",
        ]
        for name in (*NAMES, *(name for name in PUBLISHED if name not in NAMES)):
            mine = [r for r in runs if r.name == name and r.spec and (r.spec.start, r.spec.delta) == ("uniform", delta)]
            theirs = PUBLISHED_SCORES[delta].get(name)
            cbs, cost = (f"{theirs[0]:.4f}", f"{theirs[1]:.2f}") if theirs else ("", "")
            lines.append(f"| {name} | {cbs} | {_range(mine, _cbs, 4)} | {cost} | {_range(mine, _cost, 2)} |")
        lines.append("")
    return lines


def _claims(scores: Scores) -> list[str]:
    rows = [f"| {claim.text} | {'holds' if claim.holds(scores) else 'does not hold'} |" for claim in CLAIMS]
    return ["| claim | for the means above |", "|---|---|", *rows, ""]


def _fronts(scores: Scores) -> list[str]:
    rows = []
    for delta, row in scores.items():
        theirs = ", ".join(pareto_front(PUBLISHED_SCORES[delta]))
        rows.append(f"| {delta} | {', '.join(pareto_front(row))} | {theirs} |")
    return ["| delta | front of the twelve, ours | front of the eight published |", "|---|---|---|", *rows, ""]


def _table_of_starts(runs: Sequence[Summary]) -> list[str]:
    lines = ["| | " + " | ".join(f"{s}: CBS | {s}: E[R]" for s in STARTS) + " |", "|---" * (1 + 2 * len(STARTS)) + "|"]
    for delta in OTHER_STARTS_AT:
        for name in NAMES:
            cells = []
            for start in STARTS:
                mine = [r for r in runs if r.name == name and r.spec and (r.spec.start, r.spec.delta) == (start, delta)]
                cells += [_range(mine, _cbs, 3), _range(mine, _cost, 1)]
            lines.append(f"| {name}, delta {delta} | {' | '.join(cells)} |")
    return [*lines, ""]


def _table_of_latency(runs: Sequence[Summary]) -> list[str]:
    lines = [
        "| | consumers | E[R] | mean s | p95 s | p99 s | p90 of delayed s | delayed | consumer hours |",
        "|---" * 9 + "|",
    ]
    for name in dict.fromkeys(run.name for run in runs):
        for shuffled in (False, True):
            mine = [run for run in runs if run.name == name and bool(run.order) == shuffled]
            if mine:
                lines.append(f"| {name}{', shuffled orders' if shuffled else ''} | {_latency_cells(mine)} |")
    bound = _range([run for run in runs if not run.order], lambda run: run.least, 1)
    hours = _range([run for run in runs if not run.order], lambda run: run.least_consumer_hours, 1)
    return [*lines, f"| least | {bound} | | | | | | | {hours} |", ""]


def _latency_cells(runs: Sequence[Summary]) -> str:
    figures: list[tuple[_Figure, int]] = [
        (lambda run: run.mean_consumers, 1),
        (_cost, 2),
        (_late("mean_s"), 3),
        (_late("p95_s"), 2),
        (_late("p99_s"), 2),
        (_late("p90_delayed_s"), 2),
        (_late("delayed_share"), 3),
        (lambda run: run.consumer_hours, 1),
    ]
    return " | ".join(_range(runs, figure, digits) for figure, digits in figures)


def _front_picture(scores: Scores, whose: str) -> str:
    panels = [
        Chart(f"delta {delta}, {whose}", CBS, RSCORE, dots=dict(row), path=pareto_front(row))
        for delta, row in scores.items()
        if delta > 0
    ]
    return svg(panels)
