"""The status file of a consumer: whole or not at all, and never the end of who writes it."""

import json

from kgs_core.model import ConsumerId
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
