"""The registry's client against a registry that is down, slow, wrong, or has no such schema."""

import base64
import pickle
import socket
import threading
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from uuid import UUID

import pytest

from kgs_core.config import registry as registry_settings
from kgs_core.config.registry import RegistrySettings
from kgs_core.errors import ConfigError, TransientError
from kgs_core.ports.registry import SchemaKind, UnknownSchemaError
from kgs_core.registry import client as registry_client
from kgs_core.registry.client import RegistryClient, open_registry
from tests.dripping_server import ENDLESS, dripping_server
from tests.faulty_registry import running_registry
from tests.waiting import wait_until

AVRO = '{"type": "record", "name": "r", "fields": []}'


@pytest.fixture
def registry():
    with running_registry() as found:
        yield found


def client(registry, **settings):
    return RegistryClient(RegistrySettings(url=registry.url, **settings))


def test_schema_by_id_guid_and_subject_is_asked_for_once(registry):
    number, asking = registry.register("t-value", AVRO), client(registry)
    first = asking.by_id(number)
    assert (first.id, first.kind, first.text, first.references) == (number, SchemaKind.AVRO, AVRO, ())
    assert asking.by_guid(registry.guid(number)).text == AVRO
    asked = len(registry.asked)
    assert asking.by_id(number) is first
    asking.by_guid(registry.guid(number))
    assert len(registry.asked) == asked


def test_no_such_schema_is_asked_for_again(registry):
    asking = client(registry)
    for ask in (lambda: asking.by_id(1), lambda: asking.by_guid(str(UUID(int=1))), lambda: asking.latest("t-value")):
        with pytest.raises(UnknownSchemaError, match="has no"):
            ask()
    number = registry.register("t-value", AVRO)
    assert asking.by_id(number).text == asking.latest("t-value").text == AVRO
    registry.register("t-value", newer := AVRO.replace('"r"', '"s"'))
    assert asking.latest("t-value").text == newer


def test_subject_deleted_softly_is_gone_and_its_schema_is_not(registry):
    number = registry.register("t-value", AVRO)
    registry.delete("t-value")
    with pytest.raises(UnknownSchemaError, match="Subject not found"):
        client(registry).latest("t-value")
    assert client(registry).by_id(number).text == AVRO


@pytest.mark.parametrize("status", [401, 403, 408, 429, 500, 503])
def test_anything_but_there_is_none_is_passing_trouble(registry, status, monkeypatch):
    monkeypatch.setattr("kgs_core.registry.client.UNREACHABLE_S", 0)
    number, asking = registry.register("t-value", AVRO), client(registry)
    registry.faults.status = status
    with pytest.raises(TransientError, match=registry.url):
        asking.by_id(number)
    registry.faults.status = None
    assert asking.by_id(number).text == AVRO


def test_slow_registry_is_passing_trouble_and_a_lost_reply_is_asked_for_again(registry):
    number = registry.register("t-value", AVRO)
    registry.faults.delay_s = 5
    with pytest.raises(TransientError, match="does not answer"):
        RegistryClient(RegistrySettings(url=registry.url)).by_id(number)
    registry.faults.delay_s, registry.faults.lost_replies = 0, 1
    assert client(registry).by_id(number).text == AVRO


def test_references_are_resolved_each_once_and_in_subjects_that_are_deleted(registry):
    registry.register("leaf", '"string"')
    registry.register("branch", '"int"', references=[("Leaf", "leaf", 1)])
    number = registry.register("t-value", AVRO, references=[("Branch", "branch", 1), ("Leaf", "leaf", 1)])
    registry.delete("leaf")
    found = client(registry).by_id(number)
    (branch, of_branch), (leaf, of_leaf) = found.references
    assert (branch, of_branch.text, leaf, of_leaf.text) == ("Branch", '"int"', "Leaf", '"string"')
    assert of_branch.references == (("Leaf", of_leaf),)
    assert sum("leaf" in path for path in registry.asked) == 1


def test_protobuf_is_given_serialized_with_its_references(registry):
    def text(name):
        return base64.b64encode(name).decode()

    registry.register("leaf", text(b"leaf"), SchemaKind.PROTOBUF)
    number = registry.register("t-value", text(b"top"), SchemaKind.PROTOBUF, [("leaf.proto", "leaf", 1)])
    for found in (client(registry).by_id(number), client(registry).latest("t-value")):
        assert (found.kind, found.text, found.references[0][1].text) == ("PROTOBUF", text(b"top"), text(b"leaf"))


def test_client_is_one_in_a_process_and_survives_pickling(registry):
    settings = RegistrySettings(url=registry.url)
    assert open_registry(settings) is open_registry(RegistrySettings(url=registry.url))
    assert pickle.loads(pickle.dumps(open_registry(settings))) is open_registry(settings)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [({"username": "u", "password": "p:q"}, "Basic dTpwOnE="), ({"token": "secret"}, "Bearer secret"), ({}, None)],
)
def test_who_asks_signs_in(settings, wanted):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        asking = RegistryClient(RegistrySettings(url=url, **settings))
        with pytest.raises(TransientError):
            asking.by_id(1)
        with server.accept()[0] as connection:
            heard = connection.recv(10_000).decode()
    found = [line.partition(": ")[2] for line in heard.splitlines() if line.lower().startswith("authorization")]
    assert found == ([wanted] if wanted else [])


def test_certificates_that_are_not_there_are_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(ConfigError, match="check SSL_CERT_FILE"):
        RegistryClient(RegistrySettings(url="https://127.0.0.1:1"))


@pytest.fixture
def odd(registry, monkeypatch):
    """Answers paths in which these words are with this, until the block ends."""

    @contextmanager
    def odd(words, *answer):
        right = registry.answer
        with monkeypatch.context() as patch:
            patch.setattr(registry, "answer", lambda *asked: answer if words in asked[0] else right(*asked))
            yield

    return odd


@pytest.mark.parametrize("words", ["ids", "leaf"])
@pytest.mark.parametrize(
    "answer", [{}, {"status": "ok"}, {"schema": 5}, {"schema": ""}, {"schema": AVRO, "schemaType": 5}], ids=str
)
def test_json_that_is_no_schema_is_passing_trouble_and_not_kept(registry, odd, words, answer):
    """Of another server, say; as the schema, or as what it refers to."""
    registry.register("leaf", '"string"')
    number, asking = registry.register("t-value", AVRO, references=[("Leaf", "leaf", 1)]), client(registry)
    with odd(words, 200, answer), pytest.raises(TransientError, match=r"check registry\.url"):
        asking.by_id(number)
    found = asking.by_id(number)
    assert (found.text, found.references[0][1].text) == (AVRO, '"string"')


def test_schemas_that_refer_deeply_are_refused_and_wide_ones_are_cheap(registry):
    text, before = '"string"', []
    for level in range(120):
        number = registry.register(f"s{level}", text, references=before)
        before = [("One", f"s{level}", 1), ("Two", f"s{level}", 1)]
        if level == 60:
            found = client(registry).by_id(number)
    assert hash(found) == hash(replace(found))
    assert found == replace(found)
    assert found != replace(found, text=AVRO)
    with pytest.raises(UnknownSchemaError, match="more than 100 deep"):
        client(registry).by_id(number)


def test_one_schema_that_cannot_be_answered_keeps_no_other_nor_a_verdict_on_it_waiting(registry, odd, monkeypatch):
    """A proxy's page for one id: partitions of a round ask one behind the other, again and again."""
    now, good, asking = [1000.0], registry.register("t-value", AVRO), client(registry)
    monkeypatch.setattr(registry_client, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with odd("/schemas/ids/99", 500, {}):
        for after_s in (0, 60, 120):
            with pytest.raises(UnknownSchemaError) as found:
                asking.by_id(2)
            assert found.value.for_s == after_s
            with pytest.raises(TransientError, match="500"):
                asking.by_id(99)
            assert asking.by_id(good).text == AVRO
            now[0] += 60


def test_a_slow_registry_takes_no_more_than_its_share_of_a_round(registry, monkeypatch):
    """What is known is there all the while."""
    known, later = registry.register("t-value", AVRO), registry.register("u-value", '"long"')
    asking = client(registry)
    asking.by_id(known)
    monkeypatch.setattr("kgs_core.registry.client.ROUND_ASKING_S", 0.0)
    asked = len(registry.asked)
    with pytest.raises(TransientError, match=f"is slow: schema {later} is asked for later"):
        asking.by_id(later)
    assert asking.by_id(known).text == AVRO
    assert len(registry.asked) == asked
    monkeypatch.setattr("kgs_core.registry.client.ROUND_S", 0.0)
    assert asking.by_id(later).text == '"long"'


def test_references_in_a_circle_are_refused_with_few_questions(registry):
    registry.register("a", AVRO)
    registry.register("b", AVRO, references=[("A", "a", 1)])
    number = registry.register("a", AVRO + " ", references=[("B", "b", 1), ("A", "a", 2)])
    registry.asked.clear()
    with pytest.raises(UnknownSchemaError, match="it refers to itself"):
        client(registry).by_id(number)
    assert len(registry.asked) < 5


@pytest.mark.parametrize("is_down", [True, False])
def test_a_registry_that_fails_or_is_down_is_not_asked_for_each_schema(registry, is_down, monkeypatch):
    known, asking = registry.register("t-value", AVRO), client(registry)
    registry.go_down() if is_down else setattr(registry.faults, "status", 503)
    for number in range(20):
        with pytest.raises(TransientError, match="does not answer" if is_down else "503"):
            asking.by_id(number + known)
    assert len(registry.asked) < 20
    registry.go_up() if is_down else setattr(registry.faults, "status", None)
    monkeypatch.setattr("kgs_core.registry.client.UNREACHABLE_S", 0)
    asking._unreachable = None
    assert asking.by_id(known).text == AVRO


@pytest.mark.parametrize("endless", ENDLESS.values(), ids=list(ENDLESS))
def test_an_answer_that_never_ends_is_not_waited_for_and_leaves_no_thread(registry, endless, monkeypatch):
    """Each piece of it comes in time, so that the client's own limits never end it."""
    monkeypatch.setattr(registry_settings.RegistrySettings, "timeout_s", 0.1)
    number = registry.register("t-value", AVRO)
    with dripping_server(*endless) as url:
        asking = RegistryClient(RegistrySettings(url=url))
        with pytest.raises(TransientError, match=r"no whole answer within 0\.8 s"):
            asking.by_id(number)
        wait_until(
            lambda: not any(thread.name == "registry" for thread in threading.enumerate()),
            5,
            "no thread hears it any more",
        )
        asking._unreachable = None
        with pytest.raises(TransientError, match="no whole answer"):  # by a connection of its own, not a closed one
            asking.by_id(number)


def test_how_long_the_registry_has_lacked_a_schema_is_counted_without_a_break(registry, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(registry_client, "time", SimpleNamespace(monotonic=lambda: now[0]))
    asking = client(registry)

    def lacked_s():
        with pytest.raises(UnknownSchemaError) as found:
            asking.by_id(1)
        return found.value.for_s

    assert lacked_s() == 0
    now[0] += 60
    assert lacked_s() == 60
    registry.faults.status = 503
    with pytest.raises(TransientError):
        asking.by_id(1)
    registry.faults.status = None
    now[0] += 60
    assert lacked_s() == 0  # it may have been started anew in between
    now[0] += registry_client.BREAK_S + 1
    assert lacked_s() == 0  # nobody has asked meanwhile
    now[0] += 10
    assert lacked_s() == 10
    registry.register("t-value", AVRO)
    assert asking.by_id(1).text == AVRO
    assert not asking._lacks
