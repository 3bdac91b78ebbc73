"""Protobuf's descriptors as a registry gives them that keeps what was registered."""

import base64
import json

import pytest

from kgs_core.config.registry import RegistrySettings
from kgs_core.errors import TransientError
from kgs_core.registry.client import RegistryClient
from tests.loopback_http import LoopbackServer, QuietHandler


def answering(answers):
    """A server that answers paths so, and all others with 404."""

    class Handler(QuietHandler):
        def do_GET(self):  # noqa: N802
            status, found = answers.get(self.path.removeprefix("/apis/ccompat/v7"), (404, {"error_code": 40403}))
            self.reply(status, json.dumps(found).encode())

    return LoopbackServer(Handler)


EV = "CghFdi5wcm90bxIBcCIaCgJFdhIJCgFuGAEgASgDEgkKAXMYAiABKAliBnByb3RvMw=="
TWO = "Cgl0d28ucHJvdG8SAXAaCEV2LnByb3RvIhcKA1R3bxIQCgFlGAEgASgLMgUucC5FdmIGcHJvdG8z"
PROTO = 'syntax = "proto3";\npackage p;\nmessage Ev2 { int64 n = 1; string s = 2; }\n'
SERIALIZED = '\n\x03Ev2\x12\x01p"\x1b\n\x03Ev2\x12\t\n\x01n\x18\x01 \x01(\x03\x12\t\n\x01s\x18\x02 \x01(\tb\x06proto3'
FAILED = (500, {"message": "java.lang.IllegalStateException: Syntax error in Ev.proto:1:1: unexpected label"})


def test_protobuf_as_apicurio_gives_it():
    """Answers of Apicurio Registry 3.3.3."""

    def given(text, **more):
        return 200, {"schema": text, "schemaType": "PROTOBUF", **more}

    answers = {
        "/schemas/ids/1": given(EV),
        "/schemas/ids/1?format=serialized": FAILED,
        "/subjects/ev-value/versions/1?deleted=true": given(EV, subject="ev-value", version=1, id=1),
        "/schemas/ids/2": given(TWO, references=[{"name": "Ev.proto", "subject": "ev-value", "version": 1}]),
        "/schemas/ids/2?format=serialized": FAILED,
        "/schemas/ids/3": given(PROTO),
        "/schemas/ids/3?format=serialized": given(SERIALIZED),
        "/schemas/ids/4": given(PROTO),
        "/schemas/ids/4?format=serialized": given('\n\x03Big\x12\x01p"\ufffd\x05\n'),
    }
    server = answering(answers)
    try:
        asking = RegistryClient(RegistrySettings(url=f"{server.url}/apis/ccompat/v7"))
        assert asking.by_id(1).text == EV
        two = asking.by_id(2)
        assert (two.text, [(name, of.text) for name, of in two.references]) == (TWO, [("Ev.proto", EV)])
        assert base64.b64decode(asking.by_id(3).text) == SERIALIZED.encode()
        with pytest.raises(TransientError, match=r"schema 4: is a \.proto file, .*register the descriptor in base64"):
            asking.by_id(4)
    finally:
        server.close()
