"""Samples as OpenMetrics text, and the server that gives it out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Thread
from wsgiref.simple_server import WSGIServer

from prometheus_client import start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from kgs_core.errors import PermanentError
from kgs_core.metrics import METRICS, MetricKind
from kgs_core.model import grouped
from kgs_core.reporting.metric_counters import Histogram
from kgs_core.reporting.metric_samples import Sample
from kgs_core.system.closing import Closing


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """All that one look at a group has found."""

    group: str
    samples: Sequence[Sample] = field(default_factory=tuple)
    histograms: Sequence[Histogram] = field(default_factory=tuple)


class _PageCollector(Collector):
    def __init__(self, page: Callable[[], MetricsPage]) -> None:
        self._page = page

    def collect(self) -> Iterator[Metric]:
        yield from families(self._page())


def families(page: MetricsPage) -> Iterator[Metric]:
    """The page in prometheus_client's terms, in the order of the table of metrics."""
    by_metric = grouped((sample.metric, sample) for sample in page.samples)
    for histogram in page.histograms:
        yield _histogram(page.group, histogram)
    for name in METRICS:
        if name in by_metric:
            yield _family(name, page.group, by_metric[name])


def _histogram(group: str, histogram: Histogram) -> Metric:
    family = HistogramMetricFamily(histogram.metric, METRICS[histogram.metric].help, labels=["group"])
    family.add_metric([group], histogram.buckets(), histogram.sum)
    return family


def _family(name: str, group: str, found: Iterable[Sample]) -> Metric:
    metric = METRICS[name]
    if metric.kind is MetricKind.INFO:
        info = InfoMetricFamily(name, metric.help, labels=["group"])
        for sample in found:
            info.add_metric([group], dict(zip(metric.labels, sample.labels, strict=True)))
        return info
    make = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
    family = make(name, metric.help, labels=["group", *metric.labels])
    for sample in found:
        family.add_metric([group, *sample.labels], sample.value)
    return family


def _registry(page: Callable[[], MetricsPage]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_PageCollector(page))
    return registry


def text_of(page: MetricsPage) -> str:
    """The page as OpenMetrics text."""
    text: bytes = generate_latest(_registry(lambda: page))  # type: ignore[no-untyped-call]
    return text.decode()


class MetricsServer(Closing):
    """HTTP server of `/metrics`, in threads of its own; a context manager that ends it."""

    def __init__(self, page: Callable[[], MetricsPage], address: str, port: int) -> None:
        """Begins to answer.

        Args:
            page: gives the newest page; called by any thread.
            port: 0 takes a free one.

        Raises:
            PermanentError: the address cannot be listened at.
        """
        try:
            self._server: WSGIServer
            self._thread: Thread
            self._server, self._thread = start_http_server(port, address, _registry(page))
        except OSError as e:
            raise PermanentError(f"{address}:{port}: {e.strerror or e}: give another address or port") from e

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_port)

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
