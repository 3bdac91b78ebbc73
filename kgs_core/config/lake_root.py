"""Addresses of a lake: a local path, or a folder in a store of objects. Pure."""

import re
from typing import NamedTuple

FORMS = (
    "a plain path, s3://bucket/prefix, gs://bucket/prefix, az://container/prefix "
    "or abfss://container@account.dfs.core.windows.net/prefix"
)
_BUCKET = {
    "s3": r"[a-z0-9][a-z0-9.-]+",
    "gs": r"[a-z0-9][a-z0-9._-]+",
    "az": r"[a-z0-9$][a-z0-9-]+",
    "abfss": r"[a-z0-9$][a-z0-9-]+@[a-z0-9][a-z0-9.-]+",
}
_KINDS = {"s3": "s3", "gs": "gcs", "az": "azure", "abfss": "azure"}


class LakeRoot(NamedTuple):
    """An address, taken apart.

    Attributes:
        scheme: s3, gs, az or abfss; empty of a local path.
        bucket: bucket or container, with its account where the address names it; empty of a local path.
        prefix: folder in it, without slashes around it; of a local path the path.
    """

    scheme: str
    bucket: str
    prefix: str

    @property
    def kind(self) -> str:
        """Which store it is, as Dagster names it: s3, gcs or azure; empty of a local path."""
        return _KINDS.get(self.scheme, "")


def split_root(root: str) -> LakeRoot:
    """Parts of an address that `check_root` takes."""
    scheme, found, rest = root.partition("://")
    if not found:
        return LakeRoot("", "", root)
    bucket, _, prefix = rest.partition("/")
    return LakeRoot(scheme, bucket, prefix.strip("/"))


def check_root(root: str) -> str:
    """Address without a slash at its end.

    Raises:
        ValueError: no table can be there.
    """
    if "://" in root:
        scheme, bucket, prefix = split_root(root)
        if scheme not in _BUCKET:
            raise ValueError(f"this scheme is not supported; write {FORMS}")
        if not re.fullmatch(_BUCKET[scheme], bucket) or re.search(r"[?#]", root):
            raise ValueError(f"write {FORMS}; keys and addresses belong in storage_options")
        if "%" in root or "//" in prefix:  # one client takes %41 for A and another does not
            raise ValueError("'%' and '//' are not allowed in the prefix; write names as they are")
    if not root.strip() or root.startswith("~") or not root.isprintable():
        raise ValueError("write the path in full: not empty, no '~', no control characters")
    if ".." in root.split("/"):
        raise ValueError("'..' is not allowed in the root; write the full path")
    return root.rstrip("/") or "/"
