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
            "Records between the table's position and the end of the partition.",
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
            "Partitions whose lag is unknown.",
            "position in the table, end of the partition",
        ),
        _gauge(
            "kgs_partition_state",
            "1 for the present state: owned, draining, unread or stopped; idle while the group is.",
            "Target and reports",
            *_PARTITION,
            "state",
        ),
        _gauge("kgs_partition_committed_offset", "Position in the table.", "log of the table", *_PARTITION),
        _gauge(
            "kgs_consumers",
            "Consumers by state: wanted (by the newest Target), joined, spare, silent or quarantined.",
            "Target and reports",
            "state",
        ),
        _gauge("kgs_topics_consumed", "Topics with at least one partition that is owned and not stopped.", "reports"),
        _gauge(
            "kgs_consumers_lower_bound",
            "Sum of all speeds divided by the packing capacity, rounded up; absent while a speed is unknown.",
            "monitor.writeSpeed and Target",
        ),
        _gauge(
            "kgs_consumer_load_bytes_per_second",
            "Sum of the write speeds of a consumer's partitions, stored bytes.",
            "reports and monitor.writeSpeed",
            "consumer",
        ),
        _gauge(
            "kgs_consumer_capacity_bytes_per_second",
            "Capacity of a consumer: kind packing (C of the newest Target), consumer (the limit in use) or "
            "learnt (the limit by what consumers read flat out; absent while none is learnt).",
            "Target, kgs.yaml and reports",
            "kind",
        ),
        _gauge(
            "kgs_capacity_drift_ratio",
            "Learnt capacity relative to the configured one: -0.3 is 30 % less; absent while none is learnt.",
            "reports, monitor.writeSpeed and kgs.yaml",
        ),
        _gauge(
            "kgs_consumer_flat_out_bytes_per_second",
            "Rate of a consumer that is flat out, over its last busy minutes, stored bytes.",
            "reports and monitor.writeSpeed",
            "consumer",
        ),
        _gauge(
            "kgs_consumer_read_bytes_per_second",
            "Recent rate of a consumer, uncompressed bytes.",
            "reports",
            "consumer",
        ),
        _gauge(
            "kgs_consumer_report_age_seconds",
            "Time since a consumer's last report or heartbeat.",
            "reports",
            "consumer",
        ),
        _gauge(
            "kgs_consumer_batch_age_seconds",
            "Age of the batch in flight at the last report or heartbeat; 0 without one.",
            "reports",
            "consumer",
        ),
        _gauge(
            "kgs_consumer_memory_bytes",
            "Resident memory of a consumer's processes; shared pages count for each.",
            "reports",
            "consumer",
        ),
        _counter(
            "kgs_consumer_full_bytes_total",
            "Bytes that a consumer read in full rounds, uncompressed.",
            "reports",
            "consumer",
        ),
        _counter(
            "kgs_consumer_full_seconds_total",
            "Time of full rounds; bytes divided by seconds is the rate of a consumer that is flat out.",
            "reports",
            "consumer",
        ),
        _counter(
            "kgs_consumer_zone_bytes_total",
            "Bytes that a consumer received from brokers, as sent: zones same (as its own) or across; absent while its "
            "zone or theirs is unknown.",
            "reports",
            "consumer",
            "zones",
        ),
        _counter("kgs_consumer_cpu_seconds_total", "Processor time of all consumers.", "reports"),
        _counter("kgs_commits_total", "Batches committed.", "reports"),
        _counter("kgs_commit_seconds_total", "Time that consumers waited for commits.", "reports"),
        _counter(
            "kgs_commits_refused_total",
            "Batches not committed: ahead (another writer was first), error (the lake did not answer) or other (an "
            "older version's).",
            "reports",
            "reason",
        ),
        _counter("kgs_changes_total", "Changes of the Target.", "history of the Target", "reason", "forced"),
        _counter("kgs_moved_partitions_total", "Partitions that changed their consumer.", "history", "forced"),
        _counter("kgs_rscore_total", "Rscore of all changes.", "history of the Target", "forced"),
        _gauge(
            "kgs_rscore_budget_remaining",
            "Rscore that unforced changes may still move within the hour; absent without a budget.",
            "history of the Target and kgs.yaml",
        ),
        _gauge("kgs_forced_moves_only", "1 within a time of day of packing.apply, else 0.", "kgs.yaml"),
        Metric(
            "kgs_change_reaction_seconds",
            MetricKind.HISTOGRAM,
            "Time from writing a Target until every partition is where it belongs.",
            "history of the Target",
            buckets=_SECONDS,
        ),
        *(
            Metric(
                f"kgs_change_{name}_seconds",
                MetricKind.HISTOGRAM,
                f"Time {text}. Only for changes caused by load.",
                "history of the Target",
                buckets=_SECONDS,
            )
            for name, text in (
                ("seen", "from a measurement until the controller had it"),
                ("decided", "from then until the Target was written"),
                ("started", "from writing the Target until every consumer that it names has joined"),
                ("handed_over", "from then until every partition was where it belongs"),
            )
        ),
        Metric(
            "kgs_partition_unread_seconds",
            MetricKind.HISTOGRAM,
            "Time without a reader of a partition that changed hands.",
            "reports, by the brokers' clock",
            buckets=_SECONDS,
        ),
        _gauge(
            "kgs_hot_partitions",
            "Partitions that are written faster than a consumer reads.",
            "monitor.writeSpeed and kgs.yaml",
        ),
        _gauge("kgs_topics_with_bad_records", "Topics of whose newest records more than half are bad.", "reports"),
        _gauge("kgs_controller_up", "1 while measurements are published, else 0.", "monitor.writeSpeed"),
        _gauge("kgs_controller_measurement_age_seconds", "Age of the newest measurement.", "monitor.writeSpeed"),
        _counter(
            "kgs_controller_fenced_total",
            "Times that the right to write was taken, by another controller or again after a failed write; absent "
            "without the right to ask.",
            "epoch of the controllers' transactional id",
        ),
        _counter(
            "kgs_consumers_ended_total", "Incarnations that ended with a last report, by reason.", "reports", "reason"
        ),
        _counter("kgs_consumer_start_failures_total", "Incarnations that failed before they read anything.", "reports"),
        _gauge("kgs_table_rows", "Rows of a table.", "log of the table", "table"),
        _gauge("kgs_table_files", "Data files of a table.", "log of the table", "table"),
        _gauge("kgs_table_bytes", "Size of its data files.", "log of the table", "table"),
        _counter("kgs_table_dead_letters_total", "Rows of its dead-letter table.", "log of that table", "table"),
        _gauge(
            "kgs_table_last_commit_timestamp_seconds",
            "Last time that a position of the table was seen to move.",
            "log of the table, by this machine's clock",
            "table",
        ),
        _gauge(
            "kgs_table_complete_until_seconds",
            "Time before which every record is in the table; only with complete_hours.",
            "log of the table, Kafka's records",
            "table",
        ),
        _gauge(
            "kgs_newest_rows_lag_seconds",
            "Age of the oldest rows that a table of newest rows lacks; absent while not known.",
            "logs of both tables",
            "table",
        ),
        _gauge("kgs_newest_rows_max_lag_seconds", "Limit of that lag, by max_lag_s.", "kgs.yaml", "table"),
        _gauge(
            "kgs_audit_findings",
            "Findings of the last audit by kind: lost, doubled, ahead, foreign, deleted unread; contradictions; newest "
            "rows.",
            "kgs metrics --audit-every",
            "kind",
        ),
        _gauge("kgs_audit_timestamp_seconds", "When the last audit ended.", "kgs metrics --audit-every"),
        _gauge("kgs_audit_every_seconds", "Time between two audits.", "kgs metrics --audit-every"),
        _gauge("kgs_state", "1 for the desired state: running, paused or stopped.", "operator.metadata", "state"),
        _gauge(
            "kgs_exporter_look_timestamp_seconds",
            "Last time that the exporter read the group without an error.",
            "this process",
        ),
        _counter("kgs_exporter_errors_total", "Readings in which something could not be learned.", "this process"),
        Metric("kgs_build", MetricKind.INFO, "Version of the exporter.", "this process", ("version",)),
    )
}
"""Name -> metric, in the order in which they are shown."""
