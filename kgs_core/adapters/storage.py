"""The lake's root, a local path or s3://bucket/prefix: addresses for Delta, a file system for the Parquet writer."""

import functools
import os
import re
import threading
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kgs_core.errors import PermanentError, PortError, TransientError, UnsafeError

PROBE_TABLE = "_kgs_probe"
PROBE_ROUNDS = 4
PROBE_TRIES = 20
MAX_REASON = 400
_BOTH = 2
_NOISE = re.compile(r"\x1b\[\d+m|\u21b3")  # deltalake draws a coloured tree of causes
_S3_KEYS = {  # deltalake's option -> pyarrow's argument
    "aws_access_key_id": "access_key",
    "aws_secret_access_key": "secret_key",
    "aws_session_token": "session_token",
    "aws_region": "region",
    "aws_endpoint_url": "endpoint_override",
}


@dataclass(frozen=True)
class Storage:
    """Where the tables lie. Small and picklable: workers get a copy.

    Attributes:
        root: local path or s3://bucket/prefix, without a trailing slash.
        options: storage options in deltalake's names (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, ...). Never printed.
    """

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_s3(self) -> bool:
        """Whether the root is in an object store."""
        return self.root.startswith("s3://")

    def uri(self, table: str) -> str:
        """Address of a table for deltalake.

        Raises:
            UnsafeError: a link leads out of the root, or deltalake would take its name for another folder's.
        """
        uri = f"{self.root}/{table}"
        if not self.is_s3:
            if "%" in uri:  # deltalake reads %41 as A, the Parquet writer does not: log and files would part
                raise UnsafeError(f"{uri}: a lake's path must not have '%' in it: rename the folder")
            inside, root = os.path.realpath(uri), os.path.realpath(self.root)
            if os.path.commonpath([inside, root]) != root:
                raise UnsafeError(f"{uri}: leads out of the lake's root by a link: remove the link")
        return uri

    def delta_options(self) -> dict[str, str]:
        """Options for deltalake; on S3 with the conditional put that the compare-and-set stands on.

        Raises:
            UnsafeError: an option would take the conditional put away.
        """
        options = {key.lower(): value for key, value in self.options.items()}
        if not self.is_s3:
            return options
        if options.get("aws_s3_allow_unsafe_rename", "false").lower() == "true":
            raise UnsafeError("lake.storage_options: aws_s3_allow_unsafe_rename loses commits: remove it")
        if options.setdefault("aws_conditional_put", "etag") != "etag":
            raise UnsafeError("lake.storage_options: aws_conditional_put must be etag: remove it or set it so")
        return options

    def filesystem(self) -> Any:
        """A pyarrow file system; paths in it come from `path`."""
        return _filesystem(self.is_s3, tuple(sorted((k.lower(), v) for k, v in self.options.items())))

    def path(self, table: str, name: str = "") -> str:
        """Path of a table, or of a file in it, in `filesystem`."""
        base = f"{self.root.removeprefix('s3://')}/{table}"
        return f"{base}/{name}" if name else base


@functools.cache
def _filesystem(is_s3: bool, options: tuple[tuple[str, str], ...]) -> Any:  # noqa: FBT001
    from pyarrow import fs

    if not is_s3:
        return fs.LocalFileSystem()
    given = dict(options)
    arguments = {ours: given[theirs] for theirs, ours in _S3_KEYS.items() if theirs in given}
    if given.get("aws_allow_http", "false").lower() == "true":
        arguments["scheme"] = "http"
    return fs.S3FileSystem(background_writes=False, **arguments)


def probe(storage: Storage) -> None:
    """Prove that the store refuses the second of two commits of one base: a stale handle must not overwrite.

    It is the very mechanism that rows and positions are committed by, tried on a table of its own, which stays (a
    consumer need not have the right to delete). Both commits of a round are made at the same moment: deltalake looks
    for newer entries before it writes one, so a second commit that comes later is refused by any store, and only one
    that looked before the first was written meets the conditional put. Four such rounds found every store without it.

    Raises:
        UnsafeError: the store took both; such a lake would lose rows.
        PermanentError: the root cannot be written.
        TransientError: the store did not answer, or others wrote there all the time.
    """
    try:
        if not storage.is_s3:
            os.makedirs(storage.root, exist_ok=True)
        _create_probe_table(storage)
    except PortError:
        raise
    except Exception as e:
        raise PermanentError(f"lake {storage.root}: cannot write there: {one_line(e)}: mend path or rights") from e
    rounds = 0
    for _ in range(PROBE_TRIES):
        try:
            taken = _race(storage)
        except Exception as e:
            raise TransientError(f"lake {storage.root}: probe failed: {one_line(e)}") from e
        if taken == _BOTH:
            raise UnsafeError(
                f"lake {storage.root}: the store let two writers commit the same version, rows would be lost: "
                "use a local disk or an S3 store with conditional put (If-None-Match)"
            )
        rounds += taken  # 0: another process was ahead of both, which says nothing
        if rounds == PROBE_ROUNDS:
            return
    raise TransientError(f"lake {storage.root}: probe was always outrun by others")


def _create_probe_table(storage: Storage) -> None:
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    configuration = {"delta.checkpointInterval": "10", "delta.enableExpiredLogCleanup": "true"}
    uri, options = storage.uri(PROBE_TABLE), storage.delta_options()
    schema = pa.schema([("probe", pa.int64())])
    try:
        DeltaTable.create(uri, schema=schema, mode="ignore", configuration=configuration, storage_options=options)
    except Exception as e:  # noqa: BLE001 - raised again unless the table is there
        try:
            DeltaTable(uri, storage_options=options)  # another process may have made it in the same moment
        except TableNotFoundError:
            raise e from None


def _race(storage: Storage) -> int:
    """How many of two commits of one version the store takes; 0 also when the handles have different bases."""
    from deltalake import CommitProperties, DeltaTable, Transaction
    from deltalake.exceptions import CommitFailedError

    uri, options = storage.uri(PROBE_TABLE), storage.delta_options()
    handles = [DeltaTable(uri, storage_options=options) for _ in range(_BOTH)]
    if len({handle.version() for handle in handles}) > 1:
        return 0
    schema, barrier = pa.schema(handles[0].schema()), threading.Barrier(_BOTH)

    def commit(handle: DeltaTable) -> bool:
        mark = Transaction("kgs-probe", uuid.uuid4().int >> 66)
        properties = CommitProperties(max_commit_retries=0, app_transactions=[mark])
        barrier.wait()
        try:
            handle.create_write_transaction([], "append", schema, commit_properties=properties)
        except CommitFailedError:
            return False
        return True

    with ThreadPoolExecutor(_BOTH) as pool:
        return sum(pool.map(commit, handles))


def one_line(error: Exception) -> str:
    """What an error says, with its causes, in one line of plain text."""
    return " ".join(_NOISE.sub(" ", str(error) or type(error).__name__).split())[:MAX_REASON]
