"""Metrics beside a controller: whatever becomes of a look, they are given out, and nothing else ends by it."""

import logging
import socket
import threading
import urllib.request
from contextlib import suppress
from types import SimpleNamespace

import pytest

from kgs_core.errors import PermanentError, TransientError
from kgs_core.lake.rule.audit_result import LakeAudit, TableAudit
from kgs_core.reporting.metric_samples import Sample
from kgs_core.runtime import metrics_reader, metrics_service
from kgs_core.runtime.metrics_reader import MetricsReader
from tests.configuration import settings_of
from tests.waiting import wait_until

SETTINGS = settings_of()


def test_a_look_that_breaks_is_followed_by_another(monkeypatch, caplog):
    caplog.set_level(logging.INFO, "kgs_core")
    looks = []

    def look(self):
        looks.append(self)
        if len(looks) == 1:
            raise RuntimeError("a fault of kgs")
        self._publish([])
        return ("Kafka is away",)

    monkeypatch.setattr(MetricsReader, "look", look)
    monkeypatch.setattr(metrics_service, "EVERY_S", 0.01)
    with metrics_service.metrics_served(SETTINGS, "127.0.0.1", 0) as port:
        wait_until(lambda: len(looks) > 2, 30, "it goes on")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            assert 'kgs_exporter_errors_total{group="g"}' in answer.read().decode()
    said = [record.getMessage() for record in caplog.records]
    assert said == ["metrics: a look has failed", "metrics: Kafka is away"]


@pytest.mark.parametrize("error", [ValueError("never heard of"), TransientError("Kafka b:9: no answer")], ids=str)
def test_no_figure_stays_where_a_look_breaks(monkeypatch, error):
    reader = MetricsReader(SETTINGS, per_partition=True, lag_seconds=False)
    reader._publish([Sample("kgs_controller_up", (), 1.0)], failed=False)

    def broken(_):
        raise error

    monkeypatch.setattr(MetricsReader, "_look", broken)
    with suppress(ValueError):
        reader.look()
    values = {one.metric: one.value for one in reader.page().samples}
    assert "kgs_controller_up" not in values
    assert values["kgs_exporter_errors_total"] == 1


def test_an_address_that_is_taken_is_said_before_anything_begins():
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(PermanentError, match="give another address or port"),
        metrics_service.metrics_served(SETTINGS, "127.0.0.1", taken.getsockname()[1]),
    ):
        pytest.fail("it was served")


def test_an_audit_that_fails_keeps_the_last_findings_and_is_tried_again_soon(monkeypatch):
    broken = TableAudit("t", "t", "one_to_one", None, problem="table t: cannot be read")
    away = PermanentError("Kafka is away")
    outcomes = [away, LakeAudit((broken,)), LakeAudit(()), away, LakeAudit(())]
    seen, waits = [], []

    def audited(settings, **_):
        found = outcomes.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    class Stop(threading.Event):
        def wait(self, timeout=None):
            seen.append({one.metric for one in reader.samples()})
            waits.append(timeout)
            if not outcomes:
                self.set()

    class Unstarted(threading.Thread):
        def start(self):
            pass

    monkeypatch.setattr(metrics_reader, "audit_lake", audited)
    monkeypatch.setattr(metrics_reader, "threading", SimpleNamespace(Event=Stop, Thread=Unstarted))
    reader = metrics_reader._Audits(SETTINGS, 1)
    reader._run()
    assert waits == [360, 3600, 3600, 360, 3600]
    assert seen[0] == {"kgs_audit_every_seconds"} < seen[1] == seen[2] - {"kgs_audit_timestamp_seconds"} < seen[2]
    assert seen[2] == seen[3] == seen[4]
