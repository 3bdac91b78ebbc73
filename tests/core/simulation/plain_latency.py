"""The latency model as it is written down, sample by sample: what the fast one must agree with."""

import math


def latencies(measurements, assignments, flat_out=133.0):
    """All samples in the order in which they are recorded; speeds in units of C = 100."""
    recorded = []
    last = {}
    for number, (speeds, now) in enumerate(zip(measurements, assignments, strict=True)):
        before = assignments[number - 1] if number else {}
        for j in sorted(set(now.values())):
            has = {p for p, consumer in now.items() if consumer == j}
            had = {p for p, consumer in before.items() if consumer == j}
            K = math.fsum(speeds[p] for p in has & had)  # noqa: N806 - as in the source
            M = math.fsum(speeds[p] for p in has - had)  # noqa: N806
            r_K = flat_out if M == 0 else min(flat_out, K)  # noqa: N806
            r_M = flat_out - r_K  # noqa: N806
            b = last.get(j, 0.0)
            for i in range(math.floor(30 * K)):
                last[j] = max(0.0, b + i * (1 / r_K - 1 / K))
                recorded.append(last[j])
            if number > 0:
                for i in range(math.floor(30 * M)):
                    last[j] = max(0.0, 5 + i * (1 / r_M - 1 / M))
                    recorded.append(last[j])
    return recorded


def percentile(samples, per_cent):
    """Linear interpolation between the two neighbors."""
    ordered = sorted(samples)
    place = (len(ordered) - 1) * per_cent / 100
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


def figures(samples):
    """What is reported of them."""
    late = [sample for sample in samples if sample > 0]
    return {
        "mean": math.fsum(samples) / len(samples) if samples else None,
        "p95": percentile(samples, 95) if samples else None,
        "p99": percentile(samples, 99) if samples else None,
        "p90_delayed": percentile(late, 90) if late else None,
        "delayed_share": len(late) / len(samples) if samples else None,
    }
