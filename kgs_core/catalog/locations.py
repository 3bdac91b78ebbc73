"""Addresses of tables' folders, as catalogues have them. Pure."""

import re
from urllib.parse import quote, unquote

_SLASHES = re.compile(r"/{2,}")


def location_of(root: str, table: str) -> str:
    """Address of a table: `s3://bucket/prefix/table`, or `file:///path/table`.

    `root`: of the lake: absolute path, or an address in a store of objects
    """
    return f"{root}/{table}" if "://" in root else f"file://{quote(f'{root}/{table}')}"


def same_place(one: str | None, other: str | None) -> bool:
    """Whether two addresses are of one folder, in whatever form a catalogue gives them; one that is missing is none."""
    return one is not None and other is not None and _plain(one) == _plain(other)


def _plain(location: str) -> tuple[str, str]:
    scheme, colon, path = location.partition(":")
    if not colon or "/" in scheme:
        scheme, path = "file", location
    scheme = scheme.lower()
    scheme = "s3" if scheme in ("s3a", "s3n") else scheme
    return scheme, unquote(_SLASHES.sub("/", f"/{path}")).rstrip("/")
