"""Translator of Google Cloud Storage's XML protocol, which Rust's object_store speaks, into fake-gcs-server's JSON.

`python -m bench.gcs_xml PORT SERVER_PORT [drops-conditions]`. Conditions are left to the server:
`x-goog-if-generation-match` of the one protocol is `ifGenerationMatch` of the other. Without them it is a gateway that
no lake may lie behind.
"""

import http.client
import json
import sys
from datetime import datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit
from uuid import uuid4
from xml.sax.saxutils import escape

from kgs_core.system.tcp_ports import HOST

_OK, _PARTIAL, _LAST_OK, _NO_CONTENT, _NOT_FOUND = 200, 206, 299, 204, 404
_PAGE = 1000


class _Translator(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_port = 0
    drops_conditions = False
    uploads: ClassVar[dict[str, dict[int, bytes]]] = {}

    @property
    def _query(self) -> dict[str, str]:
        found = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        return {key: values[0] for key, values in found.items()}

    @property
    def _place(self) -> tuple[str, str]:
        bucket, _, name = urlsplit(self.path).path.lstrip("/").partition("/")
        return bucket, unquote(name)

    def _object(self, name: str) -> str:
        return f"/storage/v1/b/{self._place[0]}/o/{quote(name, safe='')}"

    def _ask(
        self, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(HOST, self.server_port, timeout=30)
        try:
            connection.request(method, target, body=body, headers=headers or {})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def do_GET(self) -> None:
        if not self._place[1]:
            self._list()
            return
        status, found = self._ask("GET", self._object(self._place[1]))
        if status != _OK:
            self._answer(status, found)
            return
        wanted = {"Range": self.headers["Range"]} if "Range" in self.headers else {}
        meta = json.loads(found)
        status, data = self._ask("GET", f"{self._object(self._place[1])}?alt=media", headers=wanted)
        headers = _headers_of(meta)
        if status == _PARTIAL:
            first = int(self.headers["Range"].removeprefix("bytes=").partition("-")[0] or int(meta["size"]) - len(data))
            headers["Content-Range"] = f"bytes {first}-{first + len(data) - 1}/{meta['size']}"
        self._answer(status, data, headers)

    def do_HEAD(self) -> None:
        status, found = self._ask("GET", self._object(self._place[1]))
        meta = json.loads(found) if status == _OK else {}
        self._answer(status, b"", _headers_of(meta) if meta else {}, length=int(meta.get("size", 0)))

    def do_PUT(self) -> None:
        body, query = self.rfile.read(int(self.headers.get("content-length") or 0)), self._query
        if "uploadId" in query:
            self.uploads[query["uploadId"]][int(query["partNumber"])] = body
            self._answer(_OK, b"", {"ETag": f'"{query["partNumber"]}"'})
            return
        if source := self.headers.get("x-goog-copy-source"):
            status, body = self._ask("GET", f"{self._object(unquote(source.partition('/')[2]))}?alt=media")
            if status != _OK:
                self._answer(status, body)
                return
        self._insert(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        query, (bucket, name) = self._query, self._place
        if "uploads" in query:
            number = uuid4().hex
            self.uploads[number] = {}
            inner = f"<Bucket>{bucket}</Bucket><Key>{escape(name)}</Key><UploadId>{number}</UploadId>"
            self._answer(_OK, _xml("InitiateMultipartUploadResult", inner))
            return
        parts = self.uploads.pop(query["uploadId"])
        self._insert(b"".join(parts[n] for n in sorted(parts)), as_xml=True)

    def do_DELETE(self) -> None:
        if "uploadId" in self._query:
            self.uploads.pop(self._query["uploadId"], None)
            self._answer(_NO_CONTENT, b"")
            return
        status, body = self._ask("DELETE", self._object(self._place[1]))
        self._answer(_NO_CONTENT if status <= _LAST_OK else status, b"" if status <= _LAST_OK else body)

    def _insert(self, body: bytes, *, as_xml: bool = False) -> None:
        bucket, name = self._place
        query = {"uploadType": "media", "name": name}
        condition = self.headers.get("x-goog-if-generation-match")
        if condition and not self.drops_conditions:
            query["ifGenerationMatch"] = condition
        headers = {"Content-Type": "application/octet-stream"}
        status, found = self._ask("POST", f"/upload/storage/v1/b/{bucket}/o?{urlencode(query)}", body, headers)
        if status != _OK:
            self._answer(status, found)
            return
        etag = _headers_of(json.loads(found))
        inner = f"<Key>{escape(name)}</Key><ETag>{escape(etag['ETag'])}</ETag>"
        self._answer(_OK, _xml("CompleteMultipartUploadResult", inner) if as_xml else b"", etag)

    def _list(self) -> None:
        query = self._query
        wanted = {"maxResults": str(_PAGE), "prefix": query.get("prefix", ""), "delimiter": query.get("delimiter", "")}
        after = query.get("start-after", "")
        if after:
            wanted["startOffset"] = after
        if "continuation-token" in query:
            wanted["pageToken"] = query["continuation-token"]
        status, found = self._ask("GET", f"/storage/v1/b/{self._place[0]}/o?{urlencode(wanted)}")
        if status != _OK:
            self._answer(status, found)
            return
        page = json.loads(found)
        inner = "".join(
            f"<Contents><Key>{escape(each['name'])}</Key><LastModified>{each['updated']}</LastModified>"
            f"<ETag>{escape(_headers_of(each)['ETag'])}</ETag><Size>{each['size']}</Size></Contents>"
            for each in page.get("items", [])
            if each["name"] > after
        )
        inner += "".join(
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in page.get("prefixes", [])
        )
        if token := page.get("nextPageToken"):
            inner += f"<NextContinuationToken>{escape(token)}</NextContinuationToken>"
        self._answer(_OK, _xml("ListBucketResult", inner))

    def _answer(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, length: int | None = None
    ) -> None:
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


class _TranslatorServer(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Quiet: clients that do not wait for their answer belong to it."""


def _headers_of(meta: dict[str, Any]) -> dict[str, str]:
    changed = datetime.fromisoformat(meta["updated"])
    modified = format_datetime(changed.replace(microsecond=0), usegmt=True) if changed.tzinfo else ""
    return {"ETag": f'"{meta["generation"]}"', "x-goog-generation": str(meta["generation"]), "Last-Modified": modified}


def _xml(name: str, inner: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?><{name}>{inner}</{name}>'.encode()


if __name__ == "__main__":
    _Translator.server_port = int(sys.argv[2])
    _Translator.drops_conditions = "drops-conditions" in sys.argv
    _TranslatorServer((HOST, int(sys.argv[1])), _Translator).serve_forever()
