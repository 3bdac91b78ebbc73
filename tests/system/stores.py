"""The kinds of store that a lake may lie in, for tests that must hold on each."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.object_servers import OBJECT_SERVERS, ObjectServer
from kgs_core.errors import PermanentError
from kgs_core.lake.files.storage import Storage

_numbers = itertools.count(1)
_NEIGHBOURS = [pytest.param(kind, marks=pytest.mark.neighbours) for kind in ("s3", "azure", "gcs")]


@pytest.fixture(scope="module")
def server_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], ObjectServer]]:
    """The module's one server of a kind; whoever kills it starts it again. The test is skipped without its program."""
    servers: dict[str, ObjectServer] = {}
    with ExitStack() as running:

        def server_of(kind: str) -> ObjectServer:
            if kind not in servers:
                try:
                    server = OBJECT_SERVERS[kind](tmp_path_factory.mktemp(kind))
                except PermanentError as e:
                    pytest.skip(str(e))
                servers[kind] = running.enter_context(server)
            return servers[kind]

        yield server_of


@pytest.fixture
def s3_server(server_of: Callable[[str], ObjectServer]) -> ObjectServer:
    """S3's; for tests marked `neighbours`."""
    return server_of("s3")


@pytest.fixture(params=_NEIGHBOURS)
def object_server(request: pytest.FixtureRequest, server_of: Callable[[str], ObjectServer]) -> ObjectServer:
    """One of each kind."""
    return server_of(request.param)


@pytest.fixture(params=["disk", *_NEIGHBOURS])
def new_lake(
    request: pytest.FixtureRequest, tmp_path: Path, server_of: Callable[[str], ObjectServer]
) -> Callable[[], Storage]:
    """Makes empty lakes, on a local disk and in each kind of store."""

    def make() -> Storage:
        name = f"lake{next(_numbers)}"
        return Storage(str(tmp_path / name)) if request.param == "disk" else server_of(request.param).storage(name)

    return make
