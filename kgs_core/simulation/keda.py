"""Kafka scaled by lag, as KEDA with the horizontal pod autoscaler does it."""

import math
from collections import deque

from kgs_core.model import Assignment, BytesPerSecond, ConsumerId, TopicPartition, WriteSpeeds
from kgs_core.simulation.latency import LatencySettings
from kgs_core.simulation.strategies import Baseline, Placement
from kgs_core.simulation.workload import Workload

SYNC_S = 15.0
"""How often the autoscaler decides (--horizontal-pod-autoscaler-sync-period)."""


POLLING_S = 30.0
"""`pollingInterval` of the ScaledObject, KEDA's default; in between the cached lag counts (`useCachedMetrics`)."""
STABILIZATION_S = 300.0
"""`stabilizationWindowSeconds` of `scaleDown`, Kubernetes's default; of `scaleUp` it is 0."""
TOLERANCE = 0.1
"""Of the ratio of lag to threshold, within which nothing changes; Kubernetes's default."""
COMMIT_S = 5.0
"""Consumers commit so often, so what was read since counts as lag (Kafka's default of `auto.commit.interval.ms`)."""
LAG_THRESHOLD_S = 5.0
"""`lagThreshold`, as seconds of what one consumer of capacity C reads: our choice, see `Keda`."""


class Keda:
    """Decides by lag alone, at the end of each measurement for the next one.

    Rules, and where they are written:

    1. Lag is the sum over all partitions of what is written and not committed, cut to threshold x partitions, so that
       there are never more consumers than partitions (KEDA, Kafka scaler: `lagThreshold`, `allowIdleConsumers` false;
       `getTotalLag` of its source). It is read every 30 s (KEDA, ScaledObject specification).
    2. Every 15 s the autoscaler wants ceil(lag / threshold) consumers, or as many as there are while
       |lag / (threshold x consumers) - 1| <= 0.1 (Kubernetes, "Horizontal Pod Autoscaling", algorithm details;
       `GetExternalPerPodMetricReplicas` of its source).
    3. Upwards at most to twice as many or four more, whichever is greater, in 15 s; downwards to the highest number
       wanted within the last five minutes (the same page, default behavior).
    4. Each change is a rebalance that moves as little as equal numbers of partitions allow (Kafka, KIP-429 and the
       cooperative sticky assignor); who leaves is the consumer with the highest number.

    In favor of the scaler: a new consumer reads at once; the pause of a move adds no lag; `maxReplicaCount` does not
    bind; `minReplicaCount` is 1, for KEDA's own 0 would end the last consumer; the default threshold asks for exactly
    ceil(sum of speeds / C) consumers where nobody has a backlog. It begins with that number.
    """

    def __init__(
        self, latency: LatencySettings, capacity: BytesPerSecond, lag_threshold_s: float = LAG_THRESHOLD_S
    ) -> None:
        self._interval_s = latency.interval_s
        self._threshold = lag_threshold_s * capacity
        self._reads = latency.read_speed / 100 * capacity * latency.interval_s
        self._backlog: dict[TopicPartition, float] = {}
        self._wanted: deque[tuple[float, int]] = deque()
        self._consumers = 0
        self._now_s = 0.0
        self._polled_s = -math.inf
        self._lag = 0.0

    def place(self, speeds: WriteSpeeds, current: Assignment) -> Placement:
        """The consumers that the lag up to now has brought about, and what they read."""
        if self._consumers == 0:
            lag = self._capped(math.fsum(speeds.values()) * COMMIT_S, len(speeds))
            self._consumers = max(1, math.ceil(lag / self._threshold))
        assignment = share_evenly(speeds, current, self._consumers)
        placement = Placement(assignment, self._consumers)
        self._read(speeds, assignment)
        self._decide(speeds)
        return placement

    def _read(self, speeds: WriteSpeeds, assignment: Assignment) -> None:
        """One measurement goes by: each consumer reads what is there, or as much as it can, from all alike."""
        there = {p: self._backlog.get(p, 0.0) + speed * self._interval_s for p, speed in speeds.items()}
        loads: dict[ConsumerId, float] = {}
        for partition in sorted(there):
            consumer = assignment[partition]
            loads[consumer] = loads.get(consumer, 0.0) + there[partition]
        left = {c: max(0.0, 1.0 - self._reads / load) if load > 0 else 0.0 for c, load in loads.items()}
        self._backlog = {p: size * left[assignment[p]] for p, size in there.items()}

    def _decide(self, speeds: WriteSpeeds) -> None:
        begin, self._now_s = self._now_s, self._now_s + self._interval_s
        if self._now_s - self._polled_s >= POLLING_S:
            uncommitted = math.fsum(speeds.values()) * COMMIT_S
            self._lag = self._capped(math.fsum(self._backlog.values()) + uncommitted, len(speeds))
            self._polled_s = self._now_s
        for sync in range(max(1, round(self._interval_s / SYNC_S))):
            self._sync(begin + (sync + 1) * SYNC_S)
        self._consumers = max(1, min(self._consumers, len(speeds)))

    def _sync(self, now_s: float) -> None:
        now = wanted = self._consumers
        if abs(self._lag / (self._threshold * now) - 1) > TOLERANCE:
            wanted = max(1, math.ceil(self._lag / self._threshold))
        self._wanted.append((now_s, wanted))
        while self._wanted[0][0] < now_s - STABILIZATION_S:
            self._wanted.popleft()
        if wanted >= now:
            self._consumers = min(wanted, max(2 * now, now + 4))
        else:
            self._consumers = min(now, max(number for _, number in self._wanted))

    def _capped(self, lag: float, partitions: int) -> float:
        return min(lag, self._threshold * partitions)


def share_evenly(speeds: WriteSpeeds, current: Assignment, consumers: int) -> Assignment:
    """So many partitions for each consumer that the numbers differ by one at most, with as few moves as that takes.

    Whoever has more keeps the first ones by topic and number; the fuller consumers are those that had most.
    """
    held: dict[ConsumerId, list[TopicPartition]] = {ConsumerId(n): [] for n in range(1, consumers + 1)}
    free: list[TopicPartition] = []
    for partition in sorted(speeds):
        held.get(current.get(partition, ConsumerId(0)), free).append(partition)
    each, more = divmod(len(speeds), consumers)
    for rank, consumer in enumerate(sorted(held, key=lambda c: (-len(held[c]), c))):
        share = each + (rank < more)
        free += held[consumer][share:]
        del held[consumer][share:]
    waiting = iter(sorted(free))
    for rank, consumer in enumerate(sorted(held, key=lambda c: (-len(held[c]), c))):
        missing = each + (rank < more) - len(held[consumer])
        held[consumer] += [next(waiting) for _ in range(missing)]
    return {partition: consumer for consumer, partitions in held.items() for partition in partitions}


def _begin(_parameter: str, workload: Workload, latency: LatencySettings) -> Keda:
    return Keda(latency, workload.capacity)


KEDA = Baseline("keda", "scaled by lag", _begin)
