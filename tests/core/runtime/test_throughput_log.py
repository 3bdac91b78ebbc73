"""The status file of a consumer: whole or not at all, and never the end of who writes it."""

import json
from collections import Counter

import pytest

from kgs_core.ingest.driver.round_report import RoundReport
from kgs_core.model import ConsumerId
from kgs_core.runtime import throughput_log
from kgs_core.runtime.throughput_log import ConsumerStatus


def test_two_files_that_differ_in_their_last_part_do_not_share_a_temporary_one(tmp_path):
    """a.1 and a.2 were both written by way of a.tmp."""
    for number in (1, 2):
        (tmp_path / "a.tmp").mkdir(exist_ok=True)  # whoever used it would fail
        ConsumerStatus(ConsumerId(number), tmp_path / f"a.{number}").write([])
    assert [json.loads((tmp_path / f"a.{n}").read_text())["consumer"] for n in (1, 2)] == [1, 2]


def test_a_status_file_that_cannot_be_written_is_logged_once_and_ends_nothing(tmp_path, caplog):
    """It stands for a full disk."""
    status = ConsumerStatus(ConsumerId(1), tmp_path / "missing" / "status.json")
    status.write([])
    status.write([])
    assert len([r for r in caplog.records if "cannot be written" in r.getMessage()]) == 1
    (tmp_path / "missing").mkdir()
    status.write([])
    assert (tmp_path / "missing" / "status.json").exists()


@pytest.fixture
def rounds(monkeypatch):
    """Has a consumer end rounds, each of so many seconds by the clock."""
    clock = [1000.0]
    monkeypatch.setattr(throughput_log.time, "monotonic", lambda: clock[0])
    status = ConsumerStatus(ConsumerId(1), None)

    def end(seconds, count=100, **report):
        for _ in range(count):
            clock[0] += seconds
            status.note(RoundReport(**{"consumed_bytes": 500, "offsets": Counter({"t": 5}), **report}), [])
        return status.flat_out

    return end


def test_what_is_read_flat_out_is_that_of_full_rounds_in_a_row(rounds):
    assert rounds(5.0, is_full=False, fetch_s=5.0) is None
    found = rounds(1.0, is_full=True, fetch_s=0.4, write_s=0.6)
    assert found.bytes_per_s == 500.0
    assert found.busy_s == 90.0  # of 99 s after the first full one
    assert dict(found.offsets) == {"t": 450}
    assert "x" in found.hardware


def test_of_rounds_one_full_and_one_not_nothing_is_learnt(rounds):
    for _ in range(200):
        rounds(1.0, 1, is_full=True, fetch_s=1.0)
        found = rounds(1.0, 1, is_full=False, fetch_s=1.0)
    assert found is None


@pytest.mark.parametrize(
    "waits",
    [{"fetch_s": 1.0, "waited_s": 0.7}, {"fetch_s": 0.2, "write_s": 0.1}],
    ids=["for Kafka", "for the lake's commits"],
)
def test_who_waits_is_not_flat_out(rounds, waits):
    assert rounds(1.0, is_full=True, **waits) is None
    assert rounds(1.0, is_full=True, fetch_s=0.5, write_s=0.5) is not None
