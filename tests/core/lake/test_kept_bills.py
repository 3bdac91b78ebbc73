"""Bills that are kept: the better one stays, whatever fails or is killed."""

import json
import os
from datetime import date
from pathlib import Path

import pytest
from pyarrow import fs

from kgs_core.config import parse_settings
from kgs_core.errors import PermanentError
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.topics.kept_bills import BILL_FOLDER, KeptBills

DAY = date(2026, 11, 1)


def bill(known_s, **more):
    return {
        "since": "2026-11-01T00:00:00Z",
        "used_consumer_hours": 1.0,
        "compared": [],
        "known_s": known_s,
        "compared_s": 0.0,
        **more,
    }


@pytest.fixture
def kept(tmp_path):
    text = "group: g\nkafka: {bootstrap_servers: 'b:9092'}\nlake: {root: %s}\ntopics: [{topic: a, table: t}]\n"
    return KeptBills(parse_settings((text % tmp_path).encode(), "kgs.yaml", {}))


@pytest.fixture
def folder(tmp_path):
    return Path(tmp_path, BILL_FOLDER, "g")


def test_the_bill_that_knows_more_stays(kept):
    assert kept.load(DAY) is None
    assert [kept.keep(DAY, bill(known)) for known in (3600.0, 60.0, 7200.0)] == [True, False, True]
    assert kept.load(DAY) == bill(7200.0)


def text_of(**more):
    return json.dumps({**bill(60.0), **more})


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "{}", text_of(known_s=None), text_of(known_s="60"), text_of(compared=None),
        text_of(used_cost="1"), text_of(compared=[{"name": "kafka"}]), text_of(moves={"moved": "none"}), "[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_bill_is_named_and_makes_way(kept, folder, text):
    folder.mkdir(parents=True)
    (folder / "2026-11-01.86400-86400.json").write_text(text)
    with pytest.raises(PermanentError, match="is no bill"):
        kept.load(DAY)
    assert kept.keep(DAY, bill(60.0))
    assert kept.load(DAY) == bill(60.0)
    assert len([*folder.iterdir()]) == 1


@pytest.mark.parametrize(("first", "second"), [(7200.0, 3600.0), (3600.0, 7200.0)])
def test_of_two_that_are_kept_at_once_the_one_that_knows_more_counts(kept, folder, monkeypatch, first, second):
    """Neither saw the other one's file when it looked."""
    real = KeptBills._write

    def meanwhile(self, *given):
        with monkeypatch.context() as patched:
            patched.setattr(KeptBills, "_write", real)
            kept.keep(DAY, bill(second))
        real(self, *given)

    with monkeypatch.context() as patched:
        patched.setattr(KeptBills, "_write", meanwhile)
        kept.keep(DAY, bill(first))
    assert kept.load(DAY) == bill(7200.0)
    kept.keep(DAY, bill(9000.0))
    assert [path.name for path in folder.iterdir()] == ["2026-11-01.9000-0.json"]


def test_one_that_makes_way_while_it_is_loaded_is_looked_for_again(kept, monkeypatch):
    kept.keep(DAY, bill(60.0))
    real = KeptBills._read

    def meanwhile(self, file):
        monkeypatch.setattr(KeptBills, "_read", real)
        kept.keep(DAY, bill(7200.0))
        return real(self, file)

    monkeypatch.setattr(KeptBills, "_read", meanwhile)
    assert kept.load(DAY) == bill(7200.0)


def test_one_that_cannot_be_read_for_now_is_not_replaced(kept, monkeypatch):
    kept.keep(DAY, bill(7200.0))
    real = Storage.filesystem

    class Unreadable:
        """The lake's files, of which none can be opened."""

        def __init__(self, files):
            self._files = files

        def open_input_file(self, path):
            raise OSError("timed out")

        def __getattr__(self, name):
            return getattr(self._files, name)

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "filesystem", lambda storage: Unreadable(real(storage)))
        with pytest.raises(PermanentError, match="timed out"):
            kept.keep(DAY, bill(60.0))
    assert kept.load(DAY) == bill(7200.0)


class Killed(BaseException):
    """SIGKILL, as far as it goes within one process."""


def test_killed_before_its_file_has_its_name_the_former_bill_stays(kept, folder, monkeypatch):
    kept.keep(DAY, bill(60.0))

    class Killing:
        """The lake's files; the process dies as it gives one its name."""

        def move(self, *_):
            raise Killed

        def __getattr__(self, name):
            return getattr(fs.LocalFileSystem(), name)

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "filesystem", lambda _: Killing())
        with pytest.raises(Killed):
            kept.keep(DAY, bill(7200.0))
    assert kept.load(DAY) == bill(60.0)
    (partial,) = [path for path in folder.iterdir() if path.name.startswith(".")]
    assert kept.keep(DAY, bill(7200.0))
    assert kept.load(DAY) == bill(7200.0)
    assert partial.exists(), "another process may be writing it"
    os.utime(partial, (0, 0))
    kept.load(DAY)
    assert not partial.exists()
