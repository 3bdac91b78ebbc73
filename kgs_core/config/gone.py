"""Settings of earlier versions that are gone or have moved: what to write now."""

import re
from collections.abc import Mapping

_LEARNT = "leave it out; without capacities in kgs.yaml the group learns them"
_PROCESSES = "leave it out; membership.suspect_after_s says how patient the group is"
_RESOURCES = "write kubernetes.resources, as {requests: {memory: 1Gi}, limits: {memory: 2560Mi}}"
_REPLICAS = "the brokers' default.replication.factor counts, or that of a topic which you make first"
GONE: Mapping[str, str] = {
    "catalog.ca_location": "set SSL_CERT_FILE, or for glue AWS_CA_BUNDLE, in the environment",
    "catalog.region": "write lake.storage_options.aws_region, or set AWS_REGION",
    "catalog.timeout_s": "leave it out; it is 10 s",
    "catalog.token_file": "write token: ${file:/path}",
    "bill.currency": "write it behind the price, as price_per_consumer_hour: 0.25 EUR",
    "consumer.max_batch_bytes": "leave it out; it is 4 x batch_bytes, but not above 64000000 by that",
    "kafka.secrets_dir": "leave it out; files may lie anywhere",
    "kafka.topic_replication": f"leave it out; {_REPLICAS}",
    "kubernetes.cpu": _RESOURCES,
    "kubernetes.ephemeral_storage": _RESOURCES,
    "kubernetes.ephemeral_storage_limit": _RESOURCES,
    "kubernetes.image_pull_secrets": "name them in the ServiceAccount, and that in kubernetes.service_account",
    "kubernetes.memory": _RESOURCES,
    "kubernetes.memory_limit": _RESOURCES,
    "kubernetes.namespace": "leave it out; it is that of the controller's pod, or of the kubeconfig's context",
    "kubernetes.secret_files": "write it into secrets, as name:/folder",
    "lake.commit": "leave it out; consumers combine their commits where they crowd",
    "lake.log_retention_h": "set delta.logRetentionDuration of the table, an hour or more; kgs makes it with 24 hours",
    "lake.vacuum_retention_h": "set delta.deletedFileRetentionDuration of the table; without, it is a week",
    "lake.format": "leave it out; tables are Delta's",
    "lineage": "set OPENLINEAGE_URL and OPENLINEAGE_API_KEY, or OPENLINEAGE_CONFIG, in the environment",
    "membership.consumers_per_metadata_partition": (
        "leave it out; consumers share partitions where there are more of them. Where it was above 1, `kgs stop` the "
        "group with the earlier version first"
    ),
    "membership.group_management_timeout_s": "leave it out; it is 2.5 x membership.start_timeout_s",
    "membership.heartbeat_s": _PROCESSES,
    "membership.max_measurement_age_s": _PROCESSES,
    "membership.metadata_partitions": "leave it out; there are as many as the topic has, 64 where kgs makes it",
    "membership.report_retention_h": "leave it out; it is 48 h",
    "membership.start_backoff_s": _PROCESSES,
    "membership.topic_replication": f"leave it out; {_REPLICAS}",
    "monitor.interval_s": "leave it out; it follows from monitor.window_s",
    "monitor.min_span_s": "leave it out; it is a third of monitor.window_s",
    "monitor.measure": "leave it out; speeds come from sizes, or from offsets where the cluster does not tell sizes",
    "monitor.topic_replication": f"leave it out; {_REPLICAS}",
    "monitor.topic_retention_h": "leave it out; it is 168 h. For more set the topic's retention.ms",
    "packing.approval_expires_s": "leave it out",
    "packing.apply=approve": "write forced_only, and use `kgs plan --apply`",
    "packing.capacity": _LEARNT,
    "packing.catch_up_s": "leave it out; to read a backlog sooner raise packing.min_consumers for a while",
    "packing.forced_moves_only_utc": "write apply: forced_only 07:30-20:00, with your times of day",
    "packing.learnt_capacity_max_percent": _LEARNT,
    "packing.learnt_capacity_min_percent": _LEARNT,
    "packing.max_extra_consumers_percent": "leave it out; consumer_weight says what a consumer is worth",
    "registry.ca_location": "set SSL_CERT_FILE in the environment",
    "registry.timeout_s": "leave it out; it is 5 s",
    "topics.max_files_per_batch": "leave it out; it is 20",
    "topics.max_bad_share_percent": "leave it out; kgs warns above 50",
    "topics.latest_by_key": "write newest_rows",
    "topics.target_file_bytes": "set delta.targetFileSize of the table",
    "topics.newest_rows.tombstones": "write deletes: remove where it was delete; ignore stays",
    "topics.z_order_by": "leave it out; write sort_by, or order the table by Spark's OPTIMIZE ... ZORDER BY",
    "spark.master": "write spark.settings: {spark.master: ...}",
}
"""Name in kgs.yaml, for a value that is gone with `=value` -> what to do."""


def gone(name: str, value: object) -> str | None:
    """What to write instead of a setting of an earlier version; None: it is none, or still there."""
    name = re.sub(r"\[\d+\]", "", name)
    return GONE.get(name) or (GONE.get(f"{name}={value}") if isinstance(value, str) else None)
