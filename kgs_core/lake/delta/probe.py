"""The proof that a store refuses the second of two commits of one version, made before a consumer reads anything."""

import os
import re
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pyarrow import fs

from kgs_core.errors import PermanentError, PortError, TransientError, UnsafeError, one_line
from kgs_core.lake.delta.log_entry import entry_of
from kgs_core.lake.delta.log_store import LOG_FOLDER, EntryExistsError, LogStore, log_store
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.combining import CommitIntent

PROBE_FOLDER = "_kgs_probe"
PROBE_ROUNDS = 4
PROBE_TRIES = 20
LEFT_OVER_S = 24 * 3600.0
_BOTH = 2
_DENIED = re.compile(
    r"permission denied|access ?denied|status code: 40[13]|signaturedoesnotmatch|invalidaccesskey|os error 13\b", re.I
)
_CREDENTIALS = {  # where each client looks for credentials when it has found none
    r"/latest/(api/token|meta-data)": "aws_access_key_id and aws_secret_access_key in lake.storage_options, or AWS's "
    "own variables, or a role to this machine",
    r"/metadata/identity/oauth2/token": "azure_storage_account_key, azure_storage_sas_token, or azure_client_id, "
    "azure_client_secret and azure_tenant_id in lake.storage_options, or a managed identity to this machine",
    r"/computeMetadata/": "google_service_account (a file) in lake.storage_options, or "
    "GOOGLE_APPLICATION_CREDENTIALS, or a service account to this machine",
}
_ANSWERS = {  # of stores, and how to mend what they say
    r"NoSuchBucket|ContainerNotFound": "make the bucket or container, or fix lake.root",
    r"AuthorizationHeaderMalformed|PermanentRedirect|IllegalLocationConstraint": "set aws_region in "
    "lake.storage_options to the bucket's",
    r"builder error": "an address with http:// needs allow_http: 'true' in lake.storage_options",
}
_SILENT = re.compile(
    r"error sending request|connection refused|client error \(connect\)|dns error|operation timed out", re.I
)
_PASSING = re.compile(
    r"no space left|quota exceeded|read-only file system|timed? ?out|os error (28|30|122)\b|status code: (5\d\d|429)",
    re.I,
)


def probe(storage: Storage) -> None:
    """Prove that the store refuses the second of two commits of one base: a stale writer must not overwrite.

    It is the very mechanism that rows and positions are committed by, tried on a table of the probe's own, so that
    any number of consumers may start at once. The table is removed at the end. A consumer need not have the right to
    delete: what it leaves, as what a killed one leaves, `kgs maintain` removes when it is a day old.

    Both commits of a round are made at the same moment: a store may look whether there is such an object, and then
    write, without a lock. Four such rounds found every store without the conditional put.

    Raises:
        UnsafeError: the store took both; such a lake would lose rows.
        PermanentError: the root cannot be written.
        TransientError: the store did not answer, is full or cannot be written for now.
    """
    tried_in, table = probe_place(storage)
    try:
        _prove(tried_in, table)
    except PortError:
        raise
    except Exception as e:
        raise refusal(storage, e) from e
    finally:
        remove_probe(tried_in, table)


def probe_place(storage: Storage) -> tuple[Storage, str]:
    """Where the probe's table goes: into the lake, or into the folder that the lake would be made in.

    A root that does not exist may be that of a lake that was moved: nothing is made in its place.
    """
    name, root = uuid.uuid4().hex, storage.root
    while not (storage.is_in_objects or os.path.lexists(root)):
        root = os.path.dirname(os.path.abspath(root))
    return (
        (storage, f"{PROBE_FOLDER}/{name}")
        if root == storage.root
        else (replace(storage, root=root), f"{PROBE_FOLDER}-{name}")
    )


def remove_left_over(storage: Storage) -> None:
    """Remove the tables of probes that ended more than a day ago; the store's own trouble is no error here."""
    filesystem = storage.filesystem()
    try:
        found = filesystem.get_file_info(
            fs.FileSelector(storage.path(PROBE_FOLDER), allow_not_found=True, recursive=True)
        )
    except OSError:
        return
    newest: dict[str, float] = {}
    prefix = storage.path(PROBE_FOLDER) + "/"
    for info in found:
        name = info.path.removeprefix(prefix).partition("/")[0]
        changed = info.mtime.timestamp() if info.mtime is not None else 0.0  # folders of stores have none
        newest[name] = max(changed, newest.get(name, 0.0))
    for name, changed in newest.items():
        if time.time() - changed > LEFT_OVER_S:
            remove_probe(storage, f"{PROBE_FOLDER}/{name}")


def _prove(storage: Storage, table: str) -> None:
    if not storage.is_in_objects:
        os.makedirs(os.path.join(storage.uri(table), LOG_FOLDER))
    log = log_store(storage, table)
    rounds = 0
    for number in range(PROBE_TRIES):
        taken = _race(log, number)
        if taken == _BOTH:
            raise UnsafeError(
                f"lake {storage.root}: the store let two writers commit the same version, rows would be lost: "
                "use a local disk, or a store with conditional put (docs/stores.md)"
            )
        rounds += taken  # 0: a reply was lost and its repetition refused, which says nothing
        if rounds == PROBE_ROUNDS:
            return
    raise TransientError(f"lake {storage.root}: probe: neither of two commits was taken {PROBE_TRIES} times")


def _race(log: LogStore, number: int) -> int:
    """How many of two commits of one version the store takes."""
    barrier = threading.Barrier(_BOTH)

    def commit(app: str) -> bool:
        barrier.wait()
        try:
            log.create(number, entry_of([CommitIntent({}, {app: number}, ())], "probe"))
        except EntryExistsError:
            return False
        return True

    with ThreadPoolExecutor(_BOTH) as pool:
        return sum(pool.map(commit, ("kgs-probe/1", "kgs-probe/2")))


def remove_probe(storage: Storage, table: str) -> None:
    """Remove what a probe has written, where that is allowed."""
    try:
        storage.filesystem().delete_dir(storage.path(table))
    except (OSError, PermanentError):  # not there, no right to delete, or options without a meaning
        return


def refusal(storage: Storage, error: Exception) -> PortError:
    """What a probe that failed is told as: who must act, and how."""
    words = one_line(error)
    where = f"lake {storage.root}: cannot be written: {words}"
    for asked, give in _CREDENTIALS.items():
        if re.search(asked, words):
            return TransientError(f"lake {storage.root}: no credentials: give {give}: {words}")
    for said, mend in _ANSWERS.items():
        if re.search(said, words):
            return PermanentError(f"{where}: {mend}")
    if _SILENT.search(words):
        return TransientError(f"{where}: bring the store back, or fix its address in lake.storage_options")
    if _DENIED.search(words):
        return PermanentError(f"{where}: give this user the right to read and write there, or fix lake.root")
    if _PASSING.search(words):
        return TransientError(f"{where}: make room, or bring the store back")
    return PermanentError(f"{where}: fix lake.root or its rights")
