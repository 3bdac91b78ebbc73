"""Connections to an object store: one that leads to another server is not asked for ever."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pytest

from kgs_core.errors import TransientError
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.storage import Storage

SCHEMA = pa.schema([("i", pa.int64())])


@contextmanager
def wrong_server():
    """Its address, and the port of the client's end of the connection that each request came by."""
    asked = []

    class NotTheStore(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # keeps connections open

        def answer(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append(self.client_address[1])
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - as its library calls them

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), NotTheStore)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


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
