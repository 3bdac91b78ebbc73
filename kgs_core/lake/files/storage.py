"""The lake's root, a local path or a folder in a store of objects: addresses for Delta, a file system for pyarrow."""

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from pyarrow import fs

from kgs_core.config.lake_root import split_root
from kgs_core.config.settings import LakeSettings
from kgs_core.errors import UnsafeError
from kgs_core.lake.files.object_store import RETRY_TIMEOUT, object_file_system
from kgs_core.system.files import flush
from kgs_core.system.secret_files import with_secrets


@dataclass(frozen=True)
class Storage:
    """Store of the tables. Small and picklable: workers get a copy.

    Attributes:
        root: local path, or an address as `config/lake_root.py` has them, without a trailing slash.
        options: storage options in deltalake's names (AWS_ENDPOINT_URL, AZURE_STORAGE_SAS_TOKEN, ...). Never printed.
            Those that stand in files are read with each use, so that new keys count without a restart.
        fsync: whether what is committed is on the disk first (`lake.fsync`).
    """

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    fsync: bool = False

    @classmethod
    def of(cls, lake: LakeSettings) -> Self:
        """The store that the settings name."""
        return cls(lake.root, lake.storage_options, lake.fsync)

    @property
    def is_in_objects(self) -> bool:
        """Whether the root is in a store of objects."""
        return "://" in self.root

    def uri(self, table: str) -> str:
        """Address of a table for deltalake.

        Raises:
            UnsafeError: a link leads out of the root, or deltalake would take its name for another folder's.
        """
        uri = f"{self.root}/{table}"
        if not self.is_in_objects:
            if "%" in uri:  # deltalake reads %41 as A, the Parquet writer does not: log and files would part
                raise UnsafeError(f"{uri}: a lake's path must not have '%' in it: rename the folder")
            inside, root = os.path.realpath(uri), os.path.realpath(self.root)
            if os.path.commonpath([inside, root]) != root:
                raise UnsafeError(f"{uri}: leads out of the lake's root by a link: remove the link")
        return uri

    def delta_options(self) -> dict[str, str]:
        """Options for deltalake; on S3 with the conditional put that compare-and-set needs.

        Azure and Google have it without an option.

        Raises:
            PermanentError: a file of secrets cannot be read.
            UnsafeError: an option would take the conditional put away, or name another place than the address does.
        """
        options = {key.lower(): value for key, value in with_secrets("lake.storage_options", self.options).items()}
        if self.is_in_objects:
            self._check_place(options)
            options.setdefault("retry_timeout", RETRY_TIMEOUT)
        if not self.root.startswith("s3://"):
            return options
        if options.get("aws_s3_allow_unsafe_rename", "false").lower() == "true":
            raise UnsafeError("lake.storage_options: aws_s3_allow_unsafe_rename loses commits: remove it")
        if options.setdefault("aws_conditional_put", "etag") != "etag":
            raise UnsafeError("lake.storage_options: aws_conditional_put must be etag: remove it or set it so")
        return options

    def _check_place(self, options: Mapping[str, str]) -> None:
        """Of an address and an option that differ, deltalake goes by the one, obstore by the other."""
        _, bucket, _ = split_root(self.root)
        container, _, host = bucket.partition("@")
        given = {key.removeprefix("aws_").removeprefix("azure_").removeprefix("google_"): key for key in options}
        places = dict.fromkeys(("bucket", "bucket_name", "container_name"), container)
        if host:
            places |= dict.fromkeys(("account_name", "storage_account_name"), host.partition(".")[0])
        for name, place in places.items():
            if name in given and options[given[name]] != place:
                raise UnsafeError(f"lake.storage_options: {given[name]}: lake.root says {place}: remove the option")

    def filesystem(self) -> fs.FileSystem:
        """A pyarrow file system; paths in it come from `path`."""
        if not self.is_in_objects:
            return fs.LocalFileSystem()
        return object_file_system(self.root, tuple(sorted(self.delta_options().items())))

    def forget_connections(self) -> None:
        """The next `filesystem` connects anew: a connection kept open may lead to a server that is not the store's.

        A balancer without a backend answers for it, or another pod has its address now; and whoever asks again and
        again over that connection keeps it open.
        """
        object_file_system.cache_clear()

    def make_folders(self, table: str, folder: str, beside: str = "") -> None:
        """Make a folder on a disk, level by level, below one that must exist.

        A missing lake may be moved or not mounted: a folder in its place would nest it when it is moved back.

        Args:
            table: its own folder must exist, unless `beside` is given.
            folder: path below the table's own folder; may be empty.
            beside: a table in the same parent folder that must exist; the own folder of `table` is made, too.

        Raises:
            FileNotFoundError: the folder that must exist does not.
        """
        if self.is_in_objects:
            return
        path, must_exist = self.path(table), self.path(beside or table)
        if not os.path.isdir(must_exist):
            raise FileNotFoundError(errno.ENOENT, "moved, deleted or not mounted: bring it back", must_exist)
        names = [name for name in folder.split("/") if name]
        for depth in range(0 if beside else 1, len(names) + 1):
            self.filesystem().create_dir("/".join([path, *names[:depth]]), recursive=False)

    def flush(self, table: str, name: str) -> None:
        """Put a file of a table on the disk, with its name in each folder up to the table's own, if `fsync` says so."""
        if self.fsync:
            folders = name.split("/")[:-1]
            levels = ["/".join(folders[:depth]) for depth in range(len(folders), -1, -1)]
            flush(self.path(table, name), *(self.path(table, level) for level in levels))

    def path(self, table: str, name: str = "") -> str:
        """Path of a table, or of a file in it, in `filesystem`."""
        base = table if self.is_in_objects else f"{self.root}/{table}"
        return f"{base}/{name}" if name else base
