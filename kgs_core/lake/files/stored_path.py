"""Files that people name: on a disk, or by an address in a store of objects, with the environment's credentials."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from kgs_core.config.lake_root import check_root, split_root
from kgs_core.errors import ConfigError, PermanentError, one_line


def named_path(address: "AnyPath | str") -> "AnyPath":
    """The place that a text names: an address in a store, else a path.

    Raises:
        ConfigError: an address that cannot be.
    """
    if not isinstance(address, str):
        return address
    if "://" not in address:
        return Path(address)
    try:
        scheme, bucket, prefix = split_root(check_root(address))
    except ValueError as e:
        raise ConfigError([f"{address}: {e}"]) from None
    return StoredPath(f"{scheme}://{bucket}", PurePosixPath(prefix))


@dataclass(frozen=True, slots=True)
class StoredPath:
    """A file or folder in a store, with as much of `Path` as is asked of it. A file is there whole or not at all.

    What the store does not do is an `OSError`, as of a disk.

    Attributes:
        bucket: address of the bucket or container.
        key: name in it.
    """

    bucket: str
    key: PurePosixPath

    def __str__(self) -> str:
        return f"{self.bucket}/{self.key}"

    def __truediv__(self, name: str) -> "StoredPath":
        return replace(self, key=self.key / name)

    @property
    def name(self) -> str:
        """See `Path`; `stem` and `parent` likewise."""
        return self.key.name

    @property
    def stem(self) -> str:  # noqa: D102
        return self.key.stem

    @property
    def parent(self) -> "StoredPath":  # noqa: D102
        return replace(self, key=self.key.parent)

    def exists(self) -> bool:
        """Whether it is a file."""
        with self._files() as files:
            return bool(files.get_file_info(str(self.key)).is_file)

    def read_bytes(self) -> bytes:
        """The file's contents."""
        with self._files() as files, files.open_input_stream(str(self.key)) as file:
            return bytes(file.read())

    def read_text(self, encoding: str) -> str:
        """The file's text."""
        return self.read_bytes().decode(encoding)

    def write_bytes(self, content: bytes) -> None:
        """Write the file, or replace it."""
        with self._files() as files, files.open_output_stream(str(self.key)) as file:
            file.write(content)

    def glob(self, pattern: str) -> "Iterator[StoredPath]":
        """The files whose names from here on fit, part by part."""
        from pyarrow.fs import FileSelector

        with self._files() as files:
            found = files.get_file_info(FileSelector(str(self.key), allow_not_found=True, recursive=True))
        keys = [PurePosixPath(each.path) for each in found]
        depth = len(self.key.parts) + len(PurePosixPath(pattern).parts)
        return (replace(self, key=key) for key in keys if len(key.parts) == depth and key.match(pattern))

    @contextmanager
    def _files(self) -> Iterator[Any]:
        from kgs_core.lake.files.object_store import object_file_system  # loads pyarrow

        try:
            yield object_file_system(self.bucket, ())
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(self)) from None
        except (OSError, PermanentError) as e:
            raise OSError(errno.EIO, one_line(e), str(self)) from e


AnyPath = Path | StoredPath
