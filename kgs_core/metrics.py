"""The table of all metrics: name, kind, unit, labels, what each says and where it is read. Docs and tests come from it.

Names are those of OpenMetrics: base units, and `_total` for counters. Every metric also has the label `group`. What is
not known has no sample: a missing series is not a zero.
"""

from dataclasses import dataclass
from enum import StrEnum


class MetricKind(StrEnum):
    """Kind of a metric, as OpenMetrics has it."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        help: one sentence for who looks at `/metrics`.
        source: what it is read from.
        labels: besides `group`.
        buckets: upper bounds of a histogram.
        per_partition: a series for each partition, which can be switched off.
    """

    name: str
    kind: MetricKind
    help: str
    source: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    per_partition: bool = False


_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_PARTITION = ("topic", "partition")


def _gauge(name: str, help_: str, source: str, *labels: str) -> Metric:
    return Metric(name, MetricKind.GAUGE, help_, source, labels, per_partition=labels[:2] == _PARTITION)


def _counter(name: str, help_: str, source: str, *labels: str) -> Metric:
    return Metric(name, MetricKind.COUNTER, help_, source, labels)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        _gauge(
            "kgs_partition_write_bytes_per_second",
            "Growth of a partition as the log stores it.",
            "monitor.writeSpeed",
            *_PARTITION,
        ),
        _gauge("kgs_partition_speed_known", "1 where its speed is known, else 0.", "monitor.writeSpeed", *_PARTITION),
        _gauge(
            "kgs_partition_lag_records",
            "Offsets that the table has not yet.",
            "position in the table, end of the partition",
            *_PARTITION,
        ),
        _gauge(
            "kgs_partition_lag_seconds",
            "Age of the record at the table's position; 0 where there is none.",
            "timestamp of the record at the position",
            *_PARTITION,
        ),
        _gauge(
            "kgs_lag_unknown_partitions",
            "Partitions without kgs_partition_lag_records: nobody knows how far they are.",
            "position in the table, end of the partition",
        ),
        _gauge(
            "kgs_partition_state",
            "1 for the state that it is in: owned, draining, unread or stopped.",
            "Target and reports",
            *_PARTITION,
            "state",
        ),
        _gauge("kgs_partition_committed_offset", "Position in the table.", "log of the table", *_PARTITION),
        _gauge(
            "kgs_consumers",
            "Consumers that are wanted (by the newest Target), joined, spare, silent or quarantined.",
            "Target and reports",
            "state",
        ),
        _gauge("kgs_topics_consumed", "Topics of which a partition has an owner and is not stopped.", "reports"),
        _gauge(
            "kgs_consumers_lower_bound",
            "Sum of all speeds by the capacity of packing, rounded up; not there while a speed is not known.",
            "monitor.writeSpeed and Target",
        ),
        _gauge(
            "kgs_consumer_load_bytes_per_second",
            "Sum of the write speeds of what a consumer owns, stored bytes.",
            "reports and monitor.writeSpeed",
            "consumer",
        ),
        _gauge(
            "kgs_consumer_capacity_bytes_per_second",
            "Capacity of a consumer: kind packing (C of the newest Target), consumer (the limit in use) or "
            "learnt (the limit by what consumers read flat out; not there while none is learnt).",
            "Target, kgs.yaml and reports",
            "kind",
        ),
        _gauge(
            "kgs_capacity_drift_ratio",
            "How far the learnt capacity is from the configured one: -0.3 is 30 % less; not there while none is.",
            "reports, monitor.writeSpeed and kgs.yaml",
        ),
        _gauge(
            "kgs_consumer_flat_out_bytes_per_second",
            "What a consumer has read when it was flat out, by its last busy minutes, stored bytes.",
            "reports and monitor.writeSpeed",
            "consumer",
        ),
        _gauge(
            "kgs_consumer_read_bytes_per_second",
            "What a consumer has consumed of late, uncompressed bytes.",
            "reports",
            "consumer",
        ),
        _gauge("kgs_consumer_report_age_seconds", "Time since a consumer's last sign of life.", "reports", "consumer"),
        _gauge(
            "kgs_consumer_batch_age_seconds",
            "Age of the batch in hand, at the last sign of life; 0 without one.",
            "reports",
            "consumer",
        ),
        _gauge(
            "kgs_consumer_memory_bytes",
            "Resident memory of a consumer's processes; pages that they share count for each.",
            "reports",
            "consumer",
        ),
        _counter(
            "kgs_consumer_full_bytes_total",
            "What a consumer has consumed in rounds that had as much to read as they may take, uncompressed bytes.",
            "reports",
            "consumer",
        ),
        _counter(
            "kgs_consumer_full_seconds_total",
            "Time of these rounds: bytes by seconds is what the consumer reads when it is flat out.",
            "reports",
            "consumer",
        ),
        _counter("kgs_consumer_cpu_seconds_total", "Processor time of all consumers.", "reports"),
        _counter("kgs_commits_total", "Batches that landed.", "reports"),
        _counter("kgs_commit_seconds_total", "Time that consumers have waited for commits.", "reports"),
        _counter(
            "kgs_commits_refused_total",
            "Batches that did not land: another writer was ahead, an error (the lake did not answer) or other (of a "
            "consumer of a version that does not say).",
            "reports",
            "reason",
        ),
        _counter("kgs_changes_total", "Changes of the Target.", "history of the Target", "reason", "forced"),
        _counter("kgs_moved_partitions_total", "Partitions that changed their consumer.", "history", "forced"),
        _counter("kgs_rscore_total", "Rscore of all changes.", "history of the Target", "forced"),
        _gauge(
            "kgs_rscore_budget_remaining",
            "What may still be moved in this hour without being forced; not there without a budget.",
            "history of the Target and kgs.yaml",
        ),
        _gauge(
            "kgs_forced_moves_only",
            "1 within a window of packing.forced_moves_only_utc, in which only what must move does, else 0.",
            "kgs.yaml",
        ),
        Metric(
            "kgs_change_reaction_seconds",
            MetricKind.HISTOGRAM,
            "From a Target until every partition is where it belongs.",
            "history of the Target",
            buckets=_SECONDS,
        ),
        *(
            Metric(
                f"kgs_change_{name}_seconds",
                MetricKind.HISTOGRAM,
                f"{text}; of changes that a measurement asked for.",
                "history of the Target",
                buckets=_SECONDS,
            )
            for name, text in (
                ("seen", "From a measurement until the controller had it"),
                ("decided", "From then until the Target was written"),
                ("started", "From then until all consumers had joined that it reads by"),
                ("handed_over", "From then until every partition was where it belongs"),
            )
        ),
        Metric(
            "kgs_partition_unread_seconds",
            MetricKind.HISTOGRAM,
            "How long a partition that changed hands had no reader.",
            "reports, by the brokers' clock",
            buckets=_SECONDS,
        ),
        _gauge(
            "kgs_hot_partitions",
            "Partitions that are written faster than a consumer reads.",
            "monitor.writeSpeed and kgs.yaml",
        ),
        _gauge(
            "kgs_topics_with_bad_records",
            "Topics of which more records cannot be parsed than their rule allows.",
            "reports",
        ),
        _gauge("kgs_controller_up", "1 while measurements are published, else 0.", "monitor.writeSpeed"),
        _gauge("kgs_controller_measurement_age_seconds", "Age of the newest measurement.", "monitor.writeSpeed"),
        _counter(
            "kgs_controller_fenced_total",
            "How often the right to write was taken: by another controller, or anew after a write that failed; not "
            "there without the right to ask.",
            "epoch of the controllers' transactional id",
        ),
        _counter(
            "kgs_consumers_ended_total", "Incarnations that said their last word, by reason.", "reports", "reason"
        ),
        _counter(
            "kgs_consumer_start_failures_total",
            "Incarnations that an error ended before they read anything.",
            "reports",
        ),
        _gauge("kgs_table_rows", "Rows of a table.", "log of the table", "table"),
        _gauge("kgs_table_files", "Data files of a table.", "log of the table", "table"),
        _gauge("kgs_table_bytes", "Size of its data files.", "log of the table", "table"),
        _counter("kgs_table_dead_letters_total", "Rows of its dead-letter table.", "log of that table", "table"),
        _gauge(
            "kgs_table_last_commit_timestamp_seconds",
            "When the position of one of its partitions was last seen to move.",
            "log of the table, by this machine's clock",
            "table",
        ),
        _gauge(
            "kgs_audit_findings",
            "Records that the last audit found lost, doubled, ahead, foreign or deleted unread; contradictions.",
            "kgs metrics --audit-every",
            "kind",
        ),
        _gauge("kgs_audit_timestamp_seconds", "When the last audit ended.", "kgs metrics --audit-every"),
        _gauge("kgs_audit_every_seconds", "Time between two audits.", "kgs metrics --audit-every"),
        _gauge(
            "kgs_state",
            "1 for what people want of the group: running, paused or stopped.",
            "operator.metadata",
            "state",
        ),
        _gauge(
            "kgs_exporter_look_timestamp_seconds", "When the group was last looked at with success.", "this process"
        ),
        _counter("kgs_exporter_errors_total", "Looks in which something could not be learned.", "this process"),
        Metric("kgs_build", MetricKind.INFO, "Version of the exporter.", "this process", ("version",)),
    )
}
"""Name -> metric, in the order in which they are shown."""
