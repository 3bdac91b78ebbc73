"""What `/metrics` gives out is OpenMetrics, with exactly the names, kinds and labels of the table."""

import socket
import urllib.request

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from kgs_core.errors import PermanentError
from kgs_core.metrics import METRICS, MetricKind
from kgs_core.prometheus.exposition import MetricsPage, MetricsServer, text_of
from kgs_core.reporting.metric_counters import Histogram
from kgs_core.reporting.metric_samples import Sample


def page():
    of_each = [
        Sample(name, tuple(f'{label} \\"\n' for label in metric.labels), 2.0)
        for name, metric in METRICS.items()
        if metric.kind is not MetricKind.HISTOGRAM
    ]
    histograms = [Histogram(name) for name, metric in METRICS.items() if metric.kind is MetricKind.HISTOGRAM]
    for histogram in histograms:
        histogram.add(1.0)
    return MetricsPage("my group", of_each, histograms)


def parsed(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_every_metric_of_the_table_is_given_out_as_the_table_says():
    found = parsed(text_of(page()))
    assert {name.removesuffix("_total") for name in METRICS} == set(found)
    for name, metric in METRICS.items():
        family = found[name.removesuffix("_total")]
        assert (family.type, family.documentation) == (metric.kind.value, metric.help)
        for sample in family.samples:
            assert sample.labels["group"] == "my group"
            assert set(sample.labels) - {"le"} == {"group", *metric.labels}
            if metric.kind in (MetricKind.GAUGE, MetricKind.COUNTER):
                assert sample.value == 2.0
                assert [sample.labels[label] for label in metric.labels] == [f'{x} \\"\n' for x in metric.labels]


def test_names_follow_the_rules_of_prometheus():
    for name, metric in METRICS.items():
        assert name.endswith("_total") is (metric.kind is MetricKind.COUNTER)
        assert metric.help.endswith(".")
        assert bool(metric.buckets) is (metric.kind is MetricKind.HISTOGRAM)


def test_server_gives_out_the_newest_page_and_lets_go_of_its_port():
    pages = iter([MetricsPage("g", [Sample("kgs_table_rows", ("t",), n)]) for n in (1.0, 2.0)])
    with MetricsServer(lambda: next(pages), "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.port}/metrics"
        texts = [urllib.request.urlopen(url, timeout=10).read().decode() for _ in range(2)]
        with pytest.raises(PermanentError, match="give another address or port"):
            MetricsServer(lambda: MetricsPage("g"), "127.0.0.1", server.port)
    assert [parsed_value(text) for text in texts] == [1.0, 2.0]
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", server.port))


def parsed_value(text):
    lines = [line for line in text.splitlines() if line.startswith("kgs_table_rows{")]
    return float(lines[0].split()[-1])
