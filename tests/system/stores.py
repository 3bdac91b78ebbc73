"""The kinds of store that a lake may lie in, for tests that must hold on each."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgs_core.lake.files.storage import Storage
from tests.system.s3_server import S3Server, find_versitygw, storage_at

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One S3 server for a module; whoever kills it starts it again."""
    program = find_versitygw()
    if program is None:
        pytest.skip("no versitygw (the S3 test server): `make test` builds it where Go is installed, or set VERSITYGW")
    server = S3Server(program, tmp_path_factory.mktemp("s3"))
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(params=["disk", "s3"])
def new_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Storage]:
    """Makes empty lakes, on a local disk and on S3."""

    def make() -> Storage:
        name = f"lake{next(_numbers)}"
        if request.param == "disk":
            return Storage(str(tmp_path / name))
        server: S3Server = request.getfixturevalue("s3_server")
        return storage_at(server.port, name)

    return make
