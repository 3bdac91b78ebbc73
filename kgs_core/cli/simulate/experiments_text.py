"""Text of docs/experiments.md."""

HEAD = """# Experiments

Written by `make experiments` (`kgs bench reproduction --results build/experiments --spark`) from raw results: {seeds} seeds of
each stream, one row for each algorithm and measurement. Do not edit it by hand. One's own load goes through
`kgs simulate`, see the end.

The streams are those of the paper (Landau, Andrade, Barbosa, *Kafka Consumer Group Autoscaler*, section VI): 200 partitions whose
write speeds wander by at most delta per cent of C from one measurement to the next, 501 measurements, packed one after the other
beginning with nothing. CBS is how many more consumers than the best of the twelve algorithms, E[R] the mean Rscore.
Seeds belong to the stream and to the algorithm, not to the machine or the task: the same command gives the same page.

Where text and published data disagree, or the text is silent:

| question | text | published data and code | followed here |
|---|---|---|---|
| upper bound of a speed | none: max(0, s + phi) | clamped to [0, C] | data |
| length of a stream | N = 500 measurements | 501: s_0 and 500 steps | data |
| values of phi | a random function on [-delta, delta] | whole numbers, per cent of C | data |
| does E[R] grow with delta, for all? | "a common trend for all algorithms" | NFD's falls from delta 10 on | data: the claim is tested without NFD |
| modified algorithms on the front | all but MWFP, consistently | the same, of the eight published | both |
| do start conditions matter? | "no significant difference" | - | both: not at large delta, but at small ones, see [below](#start-conditions) |
| R of a new partition | not said | 0 | data |
| first bin of next fit | rule of section IV-C | takes the lowest number, not the partition's consumer | data: NFD's E[R] would be 15 % lower otherwise |
| ties | not said | whatever order a hash map has | by topic and number, and by the consumer's number; NFD's E[R] depends much on it |
"""  # noqa: E501 - lines of Markdown

STARTS_TEXT = """## Start conditions

The paper found no significant difference between its four start conditions. That holds at delta 25, where a stream has
soon forgotten how it began, and not at delta 5: its steps are so small that 500 of them do not lead away from a start at 0 or
at C, where many partitions stay near the bound. Mean and range over seeds:
"""  # noqa: E501 - lines of Markdown

LATENCY = """## Latency beside Kafka's own assignment

The latency model replays a load: a measurement lasts 30 s, a moved partition is unread for 5 s, a consumer reads 133 % of C flat
out. What is kept is read on; what has moved starts 5 s late and catches up with what the consumer has to spare
(`kgs_core/simulation/latency.py`; a plain version of it, sample by sample, stands in the tests). The load is uniform, delta 10, with 32
partitions: about 16 consumers' worth. `kafka:K` deals the partitions to K consumers in turn and never moves them; with *shuffled
orders* the same in five random orders for each seed: what luck does. `keda` is scaled by lag (rules and sources:
`kgs_core/simulation/keda.py`). Mean and range over seeds:
"""  # noqa: E501 - lines of Markdown

SOURCES = """## On your own load

    kgs simulate --speeds week.jsonl --latency --baseline kafka:24,keda --plot week.svg
    kgs simulate --since 2026-11-15T00:00 --until 2026-11-16T00:00 --latency     # what `kgs monitor` published that day

A file has JSON lines `{"time": ..., "speeds": {"topic": {"0": bytes_per_s}}}` or CSV `measurement,topic,partition,speed`; with
`--unit-capacity 100` its speeds are in per cent of C. `--results FILE` writes a Parquet file with a row per measurement:
workload, algorithm, shuffled_order, start, delta, seed, measurement, partitions, load (in consumers), least_consumers, consumers,
rscore, moved, and with `--latency` the samples as stretches first_s, slope_s, size (sample i is max(0, first + i x slope)).
"""  # noqa: E501 - lines of Markdown
