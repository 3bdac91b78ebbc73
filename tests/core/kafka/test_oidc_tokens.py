"""Tokens of a provider: kept, fetched anew, refused or not to be had."""

import threading
from types import SimpleNamespace

import pytest

from kgs_core.errors import PermanentError, TransientError
from kgs_core.kafka import oidc_tokens
from kgs_core.kafka import tokens as tokens_module
from kgs_core.kafka.oidc_tokens import OidcTokens
from tests.dripping_server import ENDLESS, dripping_server
from tests.meanwhile import at_once
from tests.token_server import TokenServer
from tests.waiting import wait_until


@pytest.fixture
def provider():
    with TokenServer() as server:
        yield server


def tokens(provider, secret="s3cret", **other):
    names = {"client.id": "kgs", "client.secret": secret, "token.endpoint.url": f"{provider.url}/token", **other}
    return OidcTokens({f"sasl.oauthbearer.{name}": value for name, value in names.items()})


def test_a_provider_that_fails_is_asked_by_one_of_many(provider, monkeypatch):
    monkeypatch.setattr(tokens_module, "ASK_S", 60.0)
    found, failed = tokens(provider), []
    provider.fault = 503

    def ask():
        with pytest.raises(TransientError, match="503"):
            found.token()
        failed.append(1)

    at_once([threading.Thread(target=ask) for _ in range(8)])
    assert len(failed) == 8
    assert provider.asked == 1


@pytest.fixture
def impatient(monkeypatch):
    """Asks again at once."""
    monkeypatch.setattr(tokens_module, "ASK_S", 0.0)


@pytest.fixture
def clock(monkeypatch):
    """Seconds that have passed."""
    passed = [0.0]
    time, monotonic = oidc_tokens.time.time, oidc_tokens.time.monotonic
    moved = SimpleNamespace(time=lambda: time() + passed[0], monotonic=lambda: monotonic() + passed[0])
    for module in (oidc_tokens, tokens_module):
        monkeypatch.setattr(module, "time", moved)
    return passed


def test_a_token_is_used_to_its_end_where_there_is_no_other_one(provider, clock):
    found = tokens(provider)
    first = found.token()
    provider.fault = 503
    clock[0] = 0.9 * provider.life_s
    assert found.token() == first
    provider.fault = None
    assert found.token() == first  # it is not asked for all the time
    clock[0] += tokens_module.RETRY_S
    assert found.token().expires_s > first.expires_s
    provider.fault = 503
    clock[0] += provider.life_s
    with pytest.raises(TransientError, match="503"):
        found.token()


def test_a_refusal_after_tokens_is_final_only_where_it_lasts(provider, clock, impatient):
    found = tokens(provider)
    found.token()
    provider.clients["kgs"] = "rotated"
    clock[0] = provider.life_s
    with pytest.raises(TransientError, match="invalid_client"):
        found.token()
    clock[0] += tokens_module.REFUSED_S
    with pytest.raises(PermanentError, match="invalid_client"):
        found.token()
    provider.clients["kgs"] = "s3cret"
    assert found.token()
    clock[0] += provider.life_s
    provider.clients["kgs"] = "rotated"
    with pytest.raises(TransientError, match="invalid_client"):
        found.token()


def test_another_secret_is_refused_and_not_shown(provider):
    with pytest.raises(PermanentError, match="invalid_client") as caught:
        tokens(provider, "wr0ng").token()
    assert "wr0ng" not in str(caught.value)


@pytest.mark.parametrize("fault", [500, 503, 429, 204])
def test_no_token_now_is_one_that_may_come(provider, fault, impatient):
    found = tokens(provider)
    provider.fault = fault
    with pytest.raises(TransientError, match=f"{fault}"):
        found.token()
    provider.fault = None
    assert found.token()


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/token", "http://[", "http://"])
def test_nobody_at_the_address(provider, url):
    with pytest.raises(TransientError, match="token endpoint http"):
        tokens(provider, **{"token.endpoint.url": url}).token()


def test_extensions_are_handed_on(provider):
    assert tokens(provider, extensions="logicalCluster=lkc-1,identityPoolId=p=1").token().extensions == {
        "logicalCluster": "lkc-1",
        "identityPoolId": "p=1",
    }


def test_certificates_that_cannot_be_read():
    own = {"client.id": "a", "client.secret": "b", "token.endpoint.url": "https://a"}
    settings = {f"sasl.oauthbearer.{name}": value for name, value in own.items()}
    with pytest.raises(PermanentError, match=r"kafka.client: https\.ca\.\*: .*check the file"):
        OidcTokens({**settings, "https.ca.location": "/no/such/file"})


@pytest.mark.parametrize("endless", ENDLESS.values(), ids=list(ENDLESS))
def test_an_answer_that_never_ends_is_not_waited_for(monkeypatch, endless):
    monkeypatch.setattr("kgs_core.kafka.oidc_tokens._WHOLE_S", 0.3)
    own = {"client.id": "a", "client.secret": "b"}
    with dripping_server(*endless) as url:
        settings = {f"sasl.oauthbearer.{name}": value for name, value in {**own, "token.endpoint.url": url}.items()}
        with pytest.raises(TransientError, match=r"no whole answer within 0\.3 s"):
            OidcTokens(settings).token()
        wait_until(
            lambda: all(thread.name != "kafka-token-endpoint" for thread in threading.enumerate()),
            5,
            "no thread hears it any more",
        )


def test_nobody_waits_for_the_next_token_while_there_is_one(provider, clock):
    found, asked, answered = tokens(provider), threading.Event(), threading.Event()
    first = found.token()
    clock[0] = 0.9 * provider.life_s
    provider.before = lambda: (asked.set(), answered.wait(5))
    asking = threading.Thread(target=found.token)
    asking.start()
    assert asked.wait(5)
    try:
        assert found.token() == first
        assert not answered.is_set()
    finally:
        answered.set()
        asking.join()
    assert found.token() != first


@pytest.mark.parametrize(
    "answer",
    [
        b'{"access_token": "t", "expires_in": NaN}',
        b'{"access_token": "t", "expires_in": 1e400}',
        b'{"access_token": "t", "expires_in": 0}',
        b'{"access_token": "t", "expires_in": -1}',
        b'{"access_token": "t", "expires_in": "an hour"}',
        b'{"access_token": null, "expires_in": 60}',
        b'{"access_token": "", "expires_in": 60}',
        b'{"access_token": "a b", "expires_in": 60}',
        b'["t"]',
        b"<html>sign in</html>",
    ],
)
def test_what_is_no_token_is_handed_to_nobody(provider, answer):
    provider.body = answer
    with pytest.raises(TransientError, match="200: no token"):
        tokens(provider).token()


@pytest.mark.parametrize("told", [b'"300"', b"300", b"null", b"300.5"])
def test_life_of_a_token(provider, told):
    provider.body = b'{"access_token": "t", "expires_in": ' + told + b"}"
    assert tokens(provider).token().value == "t"


def test_a_provider_that_quotes_the_secret(provider):
    provider.fault, provider.body = 400, b'{"error": "no client kgs with secret s3cret"}'
    with pytest.raises(PermanentError, match=r"no client kgs with secret \.\.\.") as caught:
        tokens(provider).token()
    assert "s3cret" not in str(caught.value)


def test_certificates_where_librdkafka_has_them(provider, tmp_path):
    for place in ("probe", str(tmp_path)):
        own = {"client.id": "kgs", "client.secret": "s3cret", "token.endpoint.url": f"{provider.url}/token"}
        settings = {f"sasl.oauthbearer.{name}": value for name, value in own.items()}
        assert OidcTokens({**settings, "https.ca.location": place}).token()


@pytest.mark.parametrize(
    ("proxy", "kind"),
    [
        ("socks5://127.0.0.1:1", PermanentError),
        ("what://127.0.0.1:1", PermanentError),
        ("http://[", TransientError),
        ("http://127.0.0.1:1", TransientError),
    ],
)
def test_a_proxy_that_cannot_be(provider, monkeypatch, proxy, kind):
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(kind, match="token endpoint"):
        tokens(provider).token()
