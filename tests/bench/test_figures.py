"""The statistics of the benchmarks."""

import pytest

from bench.figures import BenchResult, Latency, Pass, Spread, significant, spread
from bench.ingest import QUEUE_BYTES, IngestPlan
from bench.records import RECORD_BYTES, SMALL_BYTES, record_values


def one_pass(variant, run, mb_per_s, *, batch_mb=5.0, batches=4):
    return Pass(
        variant,
        batch_mb,
        run,
        elapsed_s=2.0,
        records=1000,
        consumed_bytes=int(2e6 * mb_per_s),
        batch_s=[0.5] * batches,
        cpu_s=0.5,
        rss_bytes={"driver": 100_000_000, "jvm": 400_000_000, "worker": 0},
        phases_s={"fetch": 0.4},
    )


def test_spread_is_median_least_and_greatest():
    assert spread([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0, 3)
    assert spread([4.0, 1.0]).median == 2.5
    assert spread([12.34]).text() == "12.3", "one run is shown without a range"
    assert spread([79.14, 71.2, 85.0]).text() == "79.1 (71.2-85.0)"
    with pytest.raises(ValueError, match="no runs"):
        spread([])


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0"), (0.1234, "0.123"), (12.34, "12.3"), (1234.5, "1,234"), (-5.678, "-5.68")]
)
def test_significant_digits(value, shown):
    assert significant(value, 3) == shown


def test_figures_of_a_pass():
    figures = one_pass("arrow", 1, 100.0).figures()
    assert figures == {
        "mb_per_s": 100.0,
        "records_per_s": 500.0,
        "batch_ms": 500.0,
        "cpu_s_per_gb": 2.5,
        "driver_mb": 100.0,
        "jvm_mb": 400.0,
        "worker_mb": 0.0,
        "phase_fetch_ms": 100.0,
    }


def test_ratios_pair_what_ran_in_one_run():
    """A machine that is slow for a while slows both, so the pair says more than the two medians."""
    passes = [one_pass("arrow", n, mb) for n, mb in ((1, 100.0), (2, 50.0), (3, 110.0))]
    passes += [one_pass("peer-one", n, mb) for n, mb in ((1, 10.0), (2, 5.0), (3, 10.0))]
    (ratio,) = BenchResult({}, {}, passes).ratios()
    assert ratio == {"batch_mb": 5.0, "to": "peer-one", "times": Spread(10.0, 10.0, 11.0, 3), "of_medians": 10.0}
    assert BenchResult({}, {}, [one_pass("dataframe", 1, 10.0)]).ratios() == [], "none without the arrow processor"


def test_tree_holds_every_figure_with_its_range():
    result = BenchResult({"cores": 2}, {"runs": 2}, [one_pass("arrow", 1, 100.0), one_pass("arrow", 2, 50.0)])
    result.latencies.append(Latency("arrow", [0.010, 0.020, 0.030]))
    tree = result.to_dict()
    assert tree["ingest"][0]["mb_per_s"] == {"median": 75.0, "min": 50.0, "max": 100.0, "runs": 2}
    ms = {"p50_ms": 20.0, "p99_ms": pytest.approx(29.8), "min_ms": 10.0, "max_ms": 30.0}
    assert tree["latency"] == [{"variant": "arrow", "records": 3, **ms}]
    assert len(tree["passes"]) == 2


@pytest.mark.parametrize("size", [RECORD_BYTES, SMALL_BYTES])
def test_records_have_one_size_and_differ(size):
    values = record_values(500, size=size)
    assert {len(v) for v in values} == {size}
    assert len(set(values)) == 500


def test_backlog_keeps_the_queues_full_to_the_end_of_a_pass():
    plan = IngestPlan()
    assert plan.topic_bytes > QUEUE_BYTES + 2 * 64e6
    arrow_only = IngestPlan(processors=("arrow",))
    assert arrow_only.topic_bytes * arrow_only.topics > QUEUE_BYTES + 200e6 + 64e6
    assert arrow_only.topic_bytes < plan.topic_bytes
