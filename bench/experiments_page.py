"""Figures and pictures of docs/experiments.md, from raw results; its text is in `experiments.md.jinja`."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, select_autoescape

from bench.claims import CLAIMS
from bench.published import MODIFIED, NAMES, PUBLISHED_SCORES, Scores
from kgs_core.simulation.charts import Chart, svg
from kgs_core.simulation.comparison import PUBLISHED, Summary, pareto_front
from kgs_core.simulation.plots import CBS, RSCORE
from kgs_core.simulation.workload import DELTAS, STARTS

OTHER_STARTS_AT = (5, 25)
"""Deltas at which the published experiment tries the starts other than uniform."""

OURS, THEIRS, LATE = "experiments-front.svg", "experiments-front-published.svg", "experiments-latency.svg"
CURVES, THEIR_CURVES = "experiments-curves.svg", "experiments-curves-published.svg"
_Figure = Callable[[Summary], float | None]
_Cells = tuple[str, ...]
_DELTA = "delta, per cent of C"


def write_page(runs: Sequence[Summary], late_runs: Sequence[Summary], images: str) -> str:
    """The page; `images` is where the pictures are, seen from it."""
    scores = mean_scores(runs, "uniform")
    packed = [run for run in late_runs if not run.order]
    return _template().render(
        seeds=len({run.spec.seed for run in runs if run.spec}),
        images=images,
        pictures={"ours": OURS, "theirs": THEIRS, "late": LATE, "curves": CURVES, "their_curves": THEIR_CURVES},
        scores={delta: _scores(runs, delta) for delta in DELTAS},
        claims=[(claim.text, claim.holds(scores), claim.figures(scores)) for claim in CLAIMS],
        fronts=_fronts(scores),
        starts=STARTS,
        start_scores=_start_scores(runs),
        latencies=_latencies(late_runs),
        least={
            "consumers": _range(packed, lambda run: run.least, 1),
            "hours": _range(packed, lambda run: run.least_consumer_hours, 1),
        },
    )


def _template() -> Template:
    here = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=select_autoescape(),  # Markdown is not escaped
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
    )
    return here.get_template("experiments.md.jinja")


def pictures(runs: Sequence[Summary]) -> dict[str, str]:
    """The two Pareto plots, and the curves of figures 6 to 8: file name -> SVG."""
    return {
        CURVES: _curves(mean_scores(runs, "uniform", least_delta=0), "ours"),
        THEIR_CURVES: _curves(PUBLISHED_SCORES, "published"),
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


def mean_scores(runs: Iterable[Summary], start: str, least_delta: int = 1) -> Scores:
    """Delta -> algorithm -> means of CBS and E[R] over seeds; deltas from `least_delta` on."""
    found: dict[int, dict[str, list[Summary]]] = {}
    for run in runs:
        if run.spec is not None and run.spec.start == start and run.spec.delta >= least_delta:
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


def _scores(runs: Sequence[Summary], delta: int) -> list[_Cells]:
    """Cells of the twelve algorithms at one delta: name, then published and ours of CBS and of E[R]."""
    rows: list[_Cells] = []
    for name in (*NAMES, *(name for name in PUBLISHED if name not in NAMES)):
        mine = _of(runs, name, "uniform", delta)
        theirs = PUBLISHED_SCORES[delta].get(name)
        cbs, cost = (f"{theirs[0]:.4f}", f"{theirs[1]:.2f}") if theirs else ("", "")
        rows.append((name, cbs, _range(mine, _cbs, 4), cost, _range(mine, _cost, 2)))
    return rows


def _fronts(scores: Scores) -> list[_Cells]:
    """Cells of each delta: the front of ours, and of the published."""
    fronts = ((delta, pareto_front(row), pareto_front(PUBLISHED_SCORES[delta])) for delta, row in scores.items())
    return [(str(delta), ", ".join(ours), ", ".join(theirs)) for delta, ours, theirs in fronts]


def _start_scores(runs: Sequence[Summary]) -> list[_Cells]:
    """Cells of each algorithm and delta: CBS and E[R] by start."""
    rows = []
    for delta in OTHER_STARTS_AT:
        for name in NAMES:
            by_start = [_of(runs, name, start, delta) for start in STARTS]
            cells = [cell for mine in by_start for cell in (_range(mine, _cbs, 3), _range(mine, _cost, 1))]
            rows.append((f"{name}, delta {delta}", *cells))
    return rows


def _of(runs: Sequence[Summary], name: str, start: str, delta: int) -> list[Summary]:
    return [r for r in runs if r.name == name and r.spec and (r.spec.start, r.spec.delta) == (start, delta)]


def _latencies(runs: Sequence[Summary]) -> list[_Cells]:
    """Cells of each packer or baseline: what it costs and how late records are."""
    found: dict[str, list[Summary]] = {}
    for name in dict.fromkeys(run.name for run in runs):
        for suffix, shuffled in (("", False), (", shuffled orders", True)):
            mine = [run for run in runs if run.name == name and bool(run.order) == shuffled]
            if mine:
                found[name + suffix] = mine
    return [(name, *_latency_cells(mine)) for name, mine in found.items()]


def _latency_cells(runs: Sequence[Summary]) -> list[str]:
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
    return [_range(runs, figure, digits) for figure, digits in figures]


def _front_picture(scores: Scores, whose: str) -> str:
    panels = [
        Chart(f"delta {delta}, {whose}", CBS, RSCORE, dots=dict(row), path=pareto_front(row))
        for delta, row in scores.items()
        if delta > 0
    ]
    return svg(panels)


def _curves(scores: Scores, whose: str) -> str:
    """Figures 6 to 8 of the paper: CBS of all, CBS of the modified ones and BFD, E[R] of all, over delta."""
    deltas = sorted(scores)
    names = [name for name in PUBLISHED if name in scores[deltas[0]]]

    def lines(of: Sequence[str], figure: int) -> dict[str, list[tuple[float, float]]]:
        return {name: [(float(delta), scores[delta][name][figure]) for delta in deltas] for name in of}

    few = [name for name in names if name in (*MODIFIED, "bfd")]
    return svg(
        [
            Chart(f"Figure 6: CBS of all, {whose}", _DELTA, CBS, lines=lines(names, 0), marked=True),
            Chart(f"Figure 7: modified and BFD, {whose}", _DELTA, CBS, lines=lines(few, 0), marked=True),
            Chart(f"Figure 8: E[R], {whose}", _DELTA, RSCORE, lines=lines(names, 1), marked=True),
        ]
    )
