"""The Grafana dashboard, made of the table of metrics: `python ops/make_dashboard.py` writes ops/grafana/kgs.json."""

import json
import re
from pathlib import Path
from typing import Any

from kgs_core.metrics import METRICS

TARGET = Path(__file__).parent / "grafana" / "kgs.json"
WIDTH, HEIGHT, COLUMNS = 8, 8, 24
_NAME = re.compile(r"kgs_[a-z_]+?(?=_bucket\b|\b)")
_G = 'group=~"$group"'

PANELS: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("Load and capacity", "Load of each consumer", "Bps", {
        "consumer {{consumer}}": f"kgs_consumer_load_bytes_per_second{{{_G}}}",
        "capacity of {{kind}}": f"kgs_consumer_capacity_bytes_per_second{{{_G}}}",
    }),
    ("Load and capacity", "Read flat out, stored bytes, and how far off the configured capacity", "Bps", {
        "consumer {{consumer}}": f"kgs_consumer_flat_out_bytes_per_second{{{_G}}}",
        "off by, of 1": f"kgs_capacity_drift_ratio{{{_G}}}",
    }),
    ("Load and capacity", "Consumers", "short", {
        "{{state}}": f"kgs_consumers{{{_G}}}",
        "lower bound": f"kgs_consumers_lower_bound{{{_G}}}",
        "topics consumed": f"kgs_topics_consumed{{{_G}}}",
    }),
    ("Load and capacity", "Read by each consumer, uncompressed", "Bps", {
        "consumer {{consumer}}": f"kgs_consumer_read_bytes_per_second{{{_G}}}",
    }),
    ("Load and capacity", "Written, by topic", "Bps", {
        "{{topic}}": f"sum by (topic) (kgs_partition_write_bytes_per_second{{{_G}}})",
    }),
    ("Load and capacity", "Partitions by state", "short", {
        "{{state}}": f"sum by (state) (kgs_partition_state{{{_G}}})",
    }),
    ("Load and capacity", "Partitions too hot, or of unknown speed", "short", {
        "too hot": f"kgs_hot_partitions{{{_G}}}",
        "speed not known": f"sum by (group) (1 - kgs_partition_speed_known{{{_G}}})",
    }),
    ("Lag", "Behind, seconds, the most of each topic", "s", {
        "{{topic}}": f"max by (topic) (kgs_partition_lag_seconds{{{_G}}})",
    }),
    ("Lag", "Behind, records", "short", {
        "{{topic}}": f"sum by (topic) (kgs_partition_lag_records{{{_G}}})",
    }),
    ("Lag", "Partitions of unknown lag", "short", {
        "lag not known": f"kgs_lag_unknown_partitions{{{_G}}}",
    }),
    ("Lag", "Committed, records per second", "short", {
        "{{topic}}": f"sum by (topic) (deriv(kgs_partition_committed_offset{{{_G}}}[1m]))",
    }),
    ("Changes and their price", "Changes by reason", "short", {
        "{{reason}}": f"sum by (reason) (increase(kgs_changes_total{{{_G}}}[$__rate_interval]))",
    }),
    ("Changes and their price", "Partitions moved", "short", {
        "forced {{forced}}": f"increase(kgs_moved_partitions_total{{{_G}}}[$__rate_interval])",
        "only forced moves": f"kgs_forced_moves_only{{{_G}}}",
    }),
    ("Changes and their price", "Rscore an hour, and what is left of its budget", "short", {
        "forced {{forced}}": f"increase(kgs_rscore_total{{{_G}}}[1h])",
        "budget left": f"kgs_rscore_budget_remaining{{{_G}}}",
    }),
    ("Changes and their price", "From Target to all in place", "s", {
        "p50": f"histogram_quantile(0.5, sum by (le) (increase(kgs_change_reaction_seconds_bucket{{{_G}}}[1h])))",
        "p95": f"histogram_quantile(0.95, sum by (le) (increase(kgs_change_reaction_seconds_bucket{{{_G}}}[1h])))",
    }),
    ("Changes and their price", "Where that time goes, p95", "s", {
        f"{name.replace('_', ' ')}":
            f"histogram_quantile(0.95, sum by (le) (increase(kgs_change_{name}_seconds_bucket{{{_G}}}[1h])))"
        for name in ("seen", "decided", "started", "handed_over")
    }),
    ("Changes and their price", "A partition without reader", "s", {
        "p50": f"histogram_quantile(0.5, sum by (le) (increase(kgs_partition_unread_seconds_bucket{{{_G}}}[1h])))",
        "p99": f"histogram_quantile(0.99, sum by (le) (increase(kgs_partition_unread_seconds_bucket{{{_G}}}[1h])))",
    }),
    ("Changes and their price", "Ends of consumers", "short", {
        "{{reason}}": f"increase(kgs_consumers_ended_total{{{_G}}}[$__rate_interval])",
        "failed to start": f"increase(kgs_consumer_start_failures_total{{{_G}}}[$__rate_interval])",
    }),
    ("Group", "Age of the newest measurement", "s", {
        "measurement": f"kgs_controller_measurement_age_seconds{{{_G}}}",
        "controller up": f"kgs_controller_up{{{_G}}}",
        "right to write taken": f"increase(kgs_controller_fenced_total{{{_G}}}[$__rate_interval])",
    }),
    ("Group", "Age of reports and of batches in hand", "s", {
        "report of {{consumer}}": f"kgs_consumer_report_age_seconds{{{_G}}}",
        "batch of {{consumer}}": f"kgs_consumer_batch_age_seconds{{{_G}}}",
    }),
    ("Group", "Read by each consumer when it is flat out", "Bps", {
        "consumer {{consumer}}": (
            f"increase(kgs_consumer_full_bytes_total{{{_G}}}[10m]) "
            f"/ (increase(kgs_consumer_full_seconds_total{{{_G}}}[10m]) > 10)"
        ),
    }),
    ("Group", "Memory of consumers, and processors that they keep busy", "short", {
        "bytes of {{consumer}}": f"kgs_consumer_memory_bytes{{{_G}}}",
        "processors of all": f"rate(kgs_consumer_cpu_seconds_total{{{_G}}}[$__rate_interval])",
    }),
    ("Group", "Received from brokers, by whether it crossed zones", "Bps", {
        "{{consumer}}: {{zones}}": f"rate(kgs_consumer_zone_bytes_total{{{_G}}}[$__rate_interval])",
    }),
    ("Group", "Wanted state, and the exporter", "short", {
        "{{state}}": f"kgs_state{{{_G}}}",
        "errors": f"increase(kgs_exporter_errors_total{{{_G}}}[$__rate_interval])",
        "seconds since a look": f"time() - kgs_exporter_look_timestamp_seconds{{{_G}}}",
        "version {{version}}": f"kgs_build_info{{{_G}}}",
    }),
    ("Lake", "Rows", "short", {"{{table}}": f"kgs_table_rows{{{_G}}}"}),
    ("Lake", "Files, and bytes", "short", {
        "files of {{table}}": f"kgs_table_files{{{_G}}}",
        "bytes of {{table}}": f"kgs_table_bytes{{{_G}}}",
    }),
    ("Lake", "Bad records", "short", {
        "letters of {{table}}": f"increase(kgs_table_dead_letters_total{{{_G}}}[$__rate_interval])",
        "topics with too many": f"kgs_topics_with_bad_records{{{_G}}}",
    }),
    ("Lake", "Since the last commit, and since the time that a table is complete until", "s", {
        "{{table}}": f"time() - kgs_table_last_commit_timestamp_seconds{{{_G}}}",
        "{{table}} complete": f"time() - kgs_table_complete_until_seconds{{{_G}}}",
    }),
    ("Lake", "Newest rows behind, and what they may be", "s", {
        "{{table}}": f"kgs_newest_rows_lag_seconds{{{_G}}}",
        "{{table}} may be": f"kgs_newest_rows_max_lag_seconds{{{_G}}}",
    }),
    ("Lake", "Commits, seconds each, and batches that did not land", "short", {
        "seconds each": (
            f"increase(kgs_commit_seconds_total{{{_G}}}[$__rate_interval]) "
            f"/ (increase(kgs_commits_total{{{_G}}}[$__rate_interval]) > 0)"
        ),
        "did not land: {{reason}}": f"increase(kgs_commits_refused_total{{{_G}}}[$__rate_interval])",
    }),
    ("Lake", "Findings of the audit", "short", {
        "{{kind}}": f"kgs_audit_findings{{{_G}}}",
    }),
    ("Lake", "Since the last audit", "s", {
        "audit": f"time() - kgs_audit_timestamp_seconds{{{_G}}}",
        "wanted every": f"kgs_audit_every_seconds{{{_G}}}",
    }),
)  # fmt: skip
"""Row, title, unit, and legend -> expression of each panel."""


def names_in(text: str) -> set[str]:
    """Metrics that an expression names, as the table has them."""
    return {name.removesuffix("_info") for name in _NAME.findall(text)}


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana takes it."""
    unknown = {n for _, _, _, queries in PANELS for q in queries.values() for n in names_in(q)} - METRICS.keys()
    if unknown:
        raise ValueError(f"no such metrics: {', '.join(sorted(unknown))}")
    panels: list[dict[str, Any]] = []
    row, x, y = "", 0, 0
    for title_of_row, title, unit, queries in PANELS:
        if title_of_row != row:
            row, x, y = title_of_row, 0, y + (HEIGHT if panels else 0)
            panels.append({"type": "row", "title": row, "id": len(panels) + 1, "gridPos": _at(0, y, COLUMNS, 1)})
            y += 1
        elif x == COLUMNS:
            x, y = 0, y + HEIGHT
        panels.append(_panel(len(panels) + 1, title, unit, queries, _at(x, y, WIDTH, HEIGHT)))
        x += WIDTH
    return {
        "title": "kgs",
        "uid": "kgs",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [_variable("datasource", "datasource", "prometheus"), _variable("group", "query", "")]},
        "panels": panels,
    }


def _at(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(number: int, title: str, unit: str, queries: dict[str, str], at: dict[str, int]) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    targets = [
        {"refId": chr(ord("A") + n), "expr": expression, "legendFormat": legend, "datasource": source}
        for n, (legend, expression) in enumerate(queries.items())
    ]
    about = " ".join(sorted({METRICS[name].help for query in queries.values() for name in names_in(query)}))
    return {
        "type": "timeseries",
        "id": number,
        "title": title,
        "description": about,
        "datasource": source,
        "gridPos": at,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def _variable(name: str, kind: str, query: str) -> dict[str, Any]:
    if kind == "datasource":
        return {"name": name, "type": kind, "query": query}
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "name": name,
        "type": kind,
        "datasource": source,
        "query": "label_values(kgs_build_info, group)",
        "refresh": 2,
        "includeAll": False,
    }


def text() -> str:
    """What `TARGET` holds."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
