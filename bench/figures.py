"""Figures that a benchmark measured, and the statistics over its runs. Pure."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

MB = 1e6
ROLES = ("driver", "jvm", "worker")


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, least and greatest of one figure over the runs."""

    median: float
    low: float
    high: float
    runs: int

    def text(self, digits: int = 3) -> str:
        """`79.1 (71.2-85)`, to so many significant digits; one run stands alone."""
        shown = significant(self.median, digits)
        if self.runs == 1:
            return shown
        return f"{shown} ({significant(self.low, digits)}-{significant(self.high, digits)})"

    def to_dict(self) -> dict[str, float | int]:
        """For JSON."""
        return {"median": self.median, "min": self.low, "max": self.high, "runs": self.runs}


def spread(values: Iterable[float]) -> Spread:
    """Of at least one value.

    Raises:
        ValueError: there is none.
    """
    found = sorted(values)
    if not found:
        raise ValueError("no runs")
    return Spread(statistics.median(found), found[0], found[-1], len(found))


def nearest_rank(ascending: Sequence[float], share: float) -> float | None:
    """The value that a share of all lies at or below; None: there is none."""
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))] if ascending else None


def significant(value: float, digits: int) -> str:
    """A number to so many significant digits, never in powers of ten; whole numbers are not cut."""
    if value == 0:
        return "0"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:,.{max(0, digits - whole)}f}"


@dataclass(frozen=True, slots=True)
class Pass:
    """One measured stretch of one variant at one batch size.

    Attributes:
        variant: `arrow`, `dataframe`, `peer-one` or `peer-many`.
        batch_mb: batch size asked for, 10^6 bytes.
        consumed_bytes: keys and values, uncompressed.
        batch_s: each batch's seconds.
        cpu_s: user and system, of driver, JVM and Python workers together.
        rss_bytes: highest resident memory seen, by role (`ROLES`).
        phases_s: where the time went, seconds over all batches.
        other_cpu_s: used meanwhile by the waiting variants' processes; should be next to nothing.
    """

    variant: str
    batch_mb: float
    run: int
    elapsed_s: float
    records: int
    consumed_bytes: int
    batch_s: Sequence[float]
    cpu_s: float
    rss_bytes: Mapping[str, int]
    phases_s: Mapping[str, float] = field(default_factory=dict)
    other_cpu_s: float = 0.0

    def figures(self) -> dict[str, float]:
        """Every figure that is reported, by name with its unit."""
        batches = max(len(self.batch_s), 1)
        return {
            "mb_per_s": self.consumed_bytes / MB / self.elapsed_s,
            "records_per_s": self.records / self.elapsed_s,
            "batch_ms": statistics.median(self.batch_s) * 1e3 if self.batch_s else 0.0,
            "cpu_s_per_gb": self.cpu_s / (self.consumed_bytes / 1e9),
            **{f"{role}_mb": self.rss_bytes.get(role, 0) / MB for role in ROLES},
            **{f"phase_{name}_ms": seconds * 1e3 / batches for name, seconds in self.phases_s.items()},
        }


@dataclass(frozen=True, slots=True)
class Latency:
    """Produce -> committed with nothing else to do, one variant; seconds of each record."""

    variant: str
    seconds: Sequence[float]

    def to_dict(self) -> dict[str, Any]:
        """For JSON, and for the table: milliseconds."""
        ms = np.asarray(self.seconds) * 1e3
        p50, p99 = np.percentile(ms, (50, 99)).tolist()
        found = {"p50_ms": p50, "p99_ms": p99, "min_ms": float(ms.min()), "max_ms": float(ms.max())}
        return {"variant": self.variant, "records": len(ms), **found}


@dataclass(frozen=True, slots=True)
class StartTimes:
    """One process's start: until its Spark session is there, and until its first batch is committed, seconds."""

    variant: str
    session_s: float
    first_commit_s: float


@dataclass(slots=True)
class BenchResult:
    """Result of one run of the benchmark.

    Attributes:
        machine: what it ran on: cores, memory, versions.
        plan: what was asked for.
    """

    machine: Mapping[str, Any]
    plan: Mapping[str, Any]
    passes: list[Pass] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    starts: list[StartTimes] = field(default_factory=list)

    def groups(self) -> dict[tuple[float, str], list[Pass]]:
        """Passes by batch size and variant, sizes ascending, variants as they ran."""
        found: dict[tuple[float, str], list[Pass]] = {}
        for one in sorted(self.passes, key=lambda p: p.batch_mb):
            found.setdefault((one.batch_mb, one.variant), []).append(one)
        return found

    def ratios(self) -> list[dict[str, Any]]:
        """How many times faster the arrow processor is than each other variant, by batch size: MB/s over MB/s.

        Each ratio is taken within one run, where both ran shortly after each other; `of_medians` is the ratio of the
        two medians.
        """
        groups = self.groups()
        found = []
        for (batch_mb, variant), others in groups.items():
            arrow = {p.run: p for p in groups.get((batch_mb, "arrow"), [])}
            pairs = [(arrow[p.run], p) for p in others if p.run in arrow]
            if variant == "arrow" or not pairs:
                continue
            speeds = [(a.figures()["mb_per_s"], b.figures()["mb_per_s"]) for a, b in pairs]
            medians = [statistics.median(side) for side in zip(*speeds, strict=True)]
            each = spread(a / b for a, b in speeds)
            found.append({"batch_mb": batch_mb, "to": variant, "times": each, "of_medians": medians[0] / medians[1]})
        return found

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        ingest = []
        for (batch_mb, variant), passes in self.groups().items():
            each = [p.figures() for p in passes]
            names = [name for name in each[0] if all(name in figures for figures in each)]
            spreads = {name: spread(figures[name] for figures in each).to_dict() for name in names}
            ingest.append({"variant": variant, "batch_mb": batch_mb, **spreads})
        return {
            "machine": dict(self.machine),
            "plan": dict(self.plan),
            "ingest": ingest,
            "ratios": [{**ratio, "times": ratio["times"].to_dict()} for ratio in self.ratios()],
            "latency": [latency.to_dict() for latency in self.latencies],
            "start_up": [asdict(start) for start in self.starts],
            "passes": [asdict(one) for one in self.passes],
        }
