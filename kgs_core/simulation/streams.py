"""Loads that wander at random, as the published experiments have them."""

from kgs_core.model import TopicPartition
from kgs_core.packing import RandomSource
from kgs_core.simulation.workload import CAPACITY, StreamSpec, Workload

_TOP = int(CAPACITY)


def generate(spec: StreamSpec, random: RandomSource) -> Workload:
    """The stream s_0 ... s_N of `spec`, N = `spec.steps`.

    Departs from the formula, which bounds speeds from below only: the published data is clamped to [0, C], and has N
    measurements after s_0 instead of N in all (docs/adr/0007).

    Args:
        random: must be made from `spec` alone, so that the stream is the same wherever it is drawn.

    References:
        Landau 2022, section "Test Data Generation", s_i(p), phi(delta).
    """
    partitions = stream_partitions(spec.partitions, spec.topics)
    width = 2 * spec.delta + 1
    speeds = [_first(spec, random) for _ in partitions]
    measurements = [dict(zip(partitions, map(float, speeds), strict=True))]
    for _ in range(spec.steps):
        if spec.delta:
            speeds = [min(_TOP, max(0, s + int(random.random() * width) - spec.delta)) for s in speeds]
        measurements.append(dict(zip(partitions, map(float, speeds), strict=True)))
    return Workload(spec.key, CAPACITY, measurements, spec)


def stream_partitions(partitions: int, topics: int) -> list[TopicPartition]:
    """So many partitions, shared out evenly over topics whose names sort by number."""
    digits = len(str(topics - 1))
    each, more = divmod(partitions, topics)
    return [TopicPartition(f"topic-{t:0{digits}}", n) for t in range(topics) for n in range(each + (t < more))]


def _first(spec: StreamSpec, random: RandomSource) -> int:
    match spec.start:
        case "uniform":
            return int(random.random() * (_TOP + 1))
        case "zero":
            return 0
        case "half":
            return _TOP // 2
        case "full":
            return _TOP
