"""Connections to an object store: one that leads to another server is not asked for ever."""

from contextlib import contextmanager

import pyarrow as pa
import pytest

from kgs_core.errors import TransientError
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.storage import Storage
from tests.loopback_http import LoopbackServer, QuietHandler

SCHEMA = pa.schema([("i", pa.int64())])


@contextmanager
def wrong_server():
    """Its address, and the port of the client's end of the connection that each request came by."""
    asked = []

    class NotTheStore(QuietHandler):
        protocol_version = "HTTP/1.1"  # keeps connections open

        def answer(self):
            self.body()
            asked.append(self.client_address[1])
            self.reply(404)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - as its library calls them

    with LoopbackServer(NotTheStore) as server:
        yield server.url, asked


def test_after_a_write_that_failed_the_next_one_connects_anew():
    with wrong_server() as (address, asked):
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_region": "us-east-1"}
        storage = Storage("s3://lake/x", {"aws_endpoint_url": address, "aws_allow_http": "true", **keys})
        for _ in range(2):
            before = set(asked)
            asked.clear()
            with pytest.raises(TransientError, match="table t: cannot write"):
                write_table(storage, "t", [pa.record_batch([[1]], schema=SCHEMA)], SCHEMA)
            assert asked
            assert not before & set(asked)
        storage.forget_connections()
