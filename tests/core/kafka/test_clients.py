"""Clients that are made anew when a file of their secrets changes."""

from concurrent.futures import Future

import pytest

from kgs_core.errors import PermanentError, TransientError
from kgs_core.kafka import clients
from kgs_core.kafka.client_config import TOKEN_FUNCTION
from kgs_core.kafka.clients import RotatingClient, plain_settings, token_source
from kgs_core.kafka.oidc_tokens import OidcTokens
from kgs_core.kafka.silent_brokers import ask
from kgs_core.kafka.tokens import FunctionTokens
from kgs_core.system import secret_files
from tests.token_server import TokenServer


@pytest.fixture(autouse=True)
def looks_each_time(monkeypatch):
    monkeypatch.setattr(secret_files, "CHECK_EVERY_S", 0.0)


def test_a_new_password_makes_a_new_client(tmp_path):
    path, made = tmp_path / "p", []
    path.write_text("one\n")
    client = RotatingClient(
        {"sasl.password": f"${{file:{path}}}", "a": "b"}, lambda given: made.append(given) or len(made)
    )
    assert [client.get(), client.get()] == [1, 1]
    path.write_text("two\n")
    assert [client.get(), client.get()] == [2, 2]
    assert made == [{"sasl.password": "one", "a": "b"}, {"sasl.password": "two", "a": "b"}]
    path.unlink()
    assert client.get() == 2


def test_an_answer_to_a_client_of_the_old_password_does_not_bring_it_back(tmp_path):
    path, made = tmp_path / "p", []
    path.write_text("one")
    client = RotatingClient({"sasl.password": f"${{file:{path}}}"}, lambda given: made.append(given) or len(made))

    def question(_client, _timeout_s):
        path.write_text("two")
        assert client.get() == 2, "another thread's"
        answer = Future()
        answer.set_result("answer")
        return {"a": answer}

    assert ask(client, question, 1.0) == {"a": "answer"}
    assert client.get() == 2


def test_what_does_not_fit_yet_is_tried_again_beside_the_former_client(tmp_path, caplog):
    path = tmp_path / "key.pem"
    path.write_text("one")

    def make(given):
        text = path.read_text()
        if text == "half":
            raise PermanentError("the certificate is of another key")
        return text

    client = RotatingClient({"ssl.key.location": str(path)}, make)
    path.write_text("half")
    assert [client.get() for _ in range(3)] == ["one"] * 3
    assert len(caplog.messages) == 1
    path.write_text("two")
    assert client.get() == "two"


def test_without_a_token_now_the_client_comes_later(monkeypatch):
    answers = iter([TransientError("away"), TransientError("away"), None])

    def settings(_config):
        if (error := next(answers)) is not None:
            raise error
        return {}

    monkeypatch.setattr(clients, "python_settings", settings)
    client = RotatingClient({}, lambda _: "made")
    with pytest.raises(TransientError):
        client.get()
    assert client.get() == "made"
    assert client.take() == "made"
    assert client.take() is None


def test_a_file_that_is_not_there_is_refused_at_once(tmp_path):
    with pytest.raises(PermanentError, match=r"kafka.client: sasl.password: file .*: no such file"):
        RotatingClient({"sasl.password": f"${{file:{tmp_path}/none}}"}, dict)


def test_who_gives_the_tokens(tmp_path):
    secret = tmp_path / "s"
    secret.write_text("s3cret")
    with TokenServer() as server:
        own = {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "kgs",
            "sasl.oauthbearer.client.secret": f"${{file:{secret}}}",
            "sasl.oauthbearer.token.endpoint.url": f"{server.url}/token",
        }
        source = token_source(own)
        assert isinstance(source, OidcTokens)
        assert source.token().principal == "kgs"
        assert token_source(dict(own)) is source
        assert plain_settings({**own, "a": "b"}) == {"a": "b"}
        server.clients["kgs"] = "n3w"
        source._kept = None
        with pytest.raises(PermanentError, match="invalid_client"):
            source.token()
        source._call = None
        secret.write_text("n3w\n")
        assert source.token().value
    assert token_source({"sasl.mechanism": "PLAIN"}) is None
    assert isinstance(token_source({TOKEN_FUNCTION: "a:b"}), FunctionTokens)
    assert plain_settings({TOKEN_FUNCTION: "a:b", "c": "d"}) == {"c": "d"}
