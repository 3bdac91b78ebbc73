"""Three brokers behind proxies, for tests: see `bench.three_brokers`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.three_brokers import ThreeBrokers
from bench.toxiproxy import find_toxiproxy


@contextmanager
def three_brokers(folder: Path) -> Iterator[ThreeBrokers]:
    """The cluster, or a skipped test where this machine has no Toxiproxy."""
    program = find_toxiproxy()
    if program is None:
        pytest.skip("no toxiproxy-server: `make toxiproxy` builds it where Go is installed, or set TOXIPROXY")
    folder.mkdir(parents=True, exist_ok=True)
    with ThreeBrokers(program, folder) as brokers:
        yield brokers
