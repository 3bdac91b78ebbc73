"""Bills that are kept: the better one stays, whatever fails or is killed."""

import os
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pytest
from pyarrow import fs

from kgs_core.errors import PermanentError
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.topics.kept_bills import BILL_FOLDER, KeptBills
from tests.failpoints import KilledError
from tests.kgs_yaml import kgs_yaml
from tests.meanwhile import before

DAY = date(2026, 11, 1)


def bill(known_s, **more):
    found = {"since": "2026-11-01T00:00:00Z", "used_consumer_hours": 1.0, "compared": [], "compared_s": 0.0}
    return {**found, "known_s": known_s, **more}


@pytest.fixture
def kept(tmp_path):
    return KeptBills(kgs_yaml(tmp_path, {}))


@pytest.fixture
def folder(tmp_path):
    return Path(tmp_path, BILL_FOLDER, "g")


def test_the_bill_that_knows_more_stays(kept):
    assert kept.load(DAY) is None
    assert [kept.keep(DAY, bill(known)) for known in (3600.0, 60.0, 7200.0)] == [True, False, True]
    assert kept.load(DAY) == bill(7200.0)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "[" * 100_000])
def test_what_is_no_bill_is_named_and_makes_way(kept, folder, text):
    folder.mkdir(parents=True)
    (folder / "2026-11-01.86400-86400.json").write_text(text)
    with pytest.raises(PermanentError, match="is not a bill"):
        kept.load(DAY)
    assert kept.keep(DAY, bill(60.0))
    assert kept.load(DAY) == bill(60.0)
    assert len([*folder.iterdir()]) == 1


@pytest.mark.parametrize(("first", "second"), [(7200.0, 3600.0), (3600.0, 7200.0)])
def test_of_two_that_are_kept_at_once_the_one_that_knows_more_counts(kept, folder, monkeypatch, first, second):
    """Neither saw the other one's file when it looked."""
    before(monkeypatch, KeptBills, "_write", lambda: kept.keep(DAY, bill(second)))
    kept.keep(DAY, bill(first))
    assert kept.load(DAY) == bill(7200.0)
    kept.keep(DAY, bill(9000.0))
    assert [path.name for path in folder.iterdir()] == ["2026-11-01.9000-0.json"]


def test_one_that_makes_way_while_it_is_loaded_is_looked_for_again(kept, monkeypatch):
    kept.keep(DAY, bill(60.0))
    before(monkeypatch, KeptBills, "_read", lambda: kept.keep(DAY, bill(7200.0)))
    assert kept.load(DAY) == bill(7200.0)


def test_one_that_cannot_be_read_for_now_is_not_replaced(kept, monkeypatch):
    kept.keep(DAY, bill(7200.0))
    with (
        failing(monkeypatch, "open_input_file", OSError("timed out")),
        pytest.raises(PermanentError, match="timed out"),
    ):
        kept.keep(DAY, bill(60.0))
    assert kept.load(DAY) == bill(7200.0)


@contextmanager
def failing(monkeypatch, call, error):
    """One call of the file system raises."""

    def fails(*_):
        raise error

    class Files:
        def __getattr__(self, name):
            return fails if name == call else getattr(fs.LocalFileSystem(), name)

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "filesystem", lambda _: Files())
        yield


def test_killed_before_its_file_has_its_name_the_former_bill_stays(kept, folder, monkeypatch):
    kept.keep(DAY, bill(60.0))
    with failing(monkeypatch, "move", KilledError), pytest.raises(KilledError):
        kept.keep(DAY, bill(7200.0))
    assert kept.load(DAY) == bill(60.0)
    (partial,) = [path for path in folder.iterdir() if path.name.startswith(".")]
    assert kept.keep(DAY, bill(7200.0))
    assert kept.load(DAY) == bill(7200.0)
    assert partial.exists(), "another process may be writing it"
    os.utime(partial, (0, 0))
    kept.load(DAY)
    assert not partial.exists()
