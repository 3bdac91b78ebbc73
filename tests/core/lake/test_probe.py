"""The proof of a store: any number at once, nothing left behind, a refusal that says who must act."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from kgs_core.errors import PermanentError, TransientError
from kgs_core.lake.delta import probe as storage_probe
from kgs_core.lake.delta.probe import LEFT_OVER_S, PROBE_FOLDER, probe, remove_left_over
from kgs_core.lake.files.storage import Storage


@pytest.fixture
def storage(tmp_path):
    (tmp_path / "lake").mkdir()
    return Storage(str(tmp_path / "lake"))


def test_sixteen_that_start_at_once_all_pass_and_leave_nothing(storage):
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(probe, [storage] * 16)) == [None] * 16
    assert os.listdir(f"{storage.root}/{PROBE_FOLDER}") == []


def test_nothing_is_left_in_the_place_of_a_lake_that_was_moved(tmp_path):
    probe(Storage(str(tmp_path / "mount" / "lake")))
    assert os.listdir(tmp_path) == []


def test_rounds_that_say_nothing_are_no_proof(storage, monkeypatch):
    monkeypatch.setattr(storage_probe, "_race", lambda *_: 0)
    with pytest.raises(TransientError, match="neither of two commits was taken"):
        probe(storage)


NO_CREDENTIALS = (
    "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 9s - HTTP error: error sending "
    "request\n\nDebug source:\nGeneric {\n    source: RetryError(\n        RetryErrorImpl {\n method: PUT,"
)


@pytest.mark.parametrize(
    ("problem", "kind", "words"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), PermanentError, "give this user the right"),
        (OSError("Generic S3 error: Server returned non-2xx status code: 403 Forbidden"), PermanentError, "the right"),
        (OSError(errno.ENOSPC, "No space left on device"), TransientError, "make room"),
        (OSError("Generic LocalFileSystem error: Read-only file system (os error 30)"), TransientError, "bring the"),
        (OSError("client error (Connect) tcp connect error Connection refused"), TransientError, "bring the store"),
        (
            OSError("Error performing PUT http://s in 30.0s - HTTP error: error sending request"),
            TransientError,
            "bring",
        ),
        (OSError("404 Not Found: <Error><Code>NoSuchBucket</Code>"), PermanentError, "make the bucket or container"),
        (OSError("404 Not Found: <Error> <Code>ContainerNotFound</Code>"), PermanentError, "make the bucket"),
        (OSError("400 Bad Request: <Code>AuthorizationHeaderMalformed</Code>"), PermanentError, "set aws_region"),
        (OSError("Error performing PUT http://s in 7us - HTTP error: builder error"), PermanentError, "allow_http"),
        (OSError(NO_CREDENTIALS), TransientError, "no credentials: give aws_access_key_id .* request$"),
        (OSError("HTTP error 503.2ms Server returned non-2xx status code: 404"), PermanentError, "fix lake.root"),
    ],
)
def test_a_root_that_cannot_be_written_says_who_must_act(storage, monkeypatch, problem, kind, words):
    def refuse(*args, **kwargs):
        raise problem

    monkeypatch.setattr(os, "makedirs", refuse)
    with pytest.raises(kind, match=words) as raised:
        probe(storage)
    assert str(raised.value).startswith(f"lake {storage.root}: ")


def test_what_killed_probes_left_is_removed_when_it_is_a_day_old(storage):
    old, young = (f"{storage.root}/{PROBE_FOLDER}/{name}/_delta_log" for name in ("old", "young"))
    for folder in (old, young):
        os.makedirs(folder)
        with open(f"{folder}/0.json", "w"):
            pass
    then = os.stat(old).st_mtime - LEFT_OVER_S - 60
    for path in (f"{old}/0.json", old, os.path.dirname(old)):
        os.utime(path, (then, then))
    remove_left_over(storage)
    assert os.listdir(f"{storage.root}/{PROBE_FOLDER}") == ["young"]
