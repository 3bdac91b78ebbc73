"""What may be handed on to librdkafka."""

import json

import pytest

PLAIN = "security.protocol: SASL_SSL, sasl.mechanism: PLAIN"


def with_client(client):
    return f"kafka: {{bootstrap_servers: 'a:1', client: {client}}}"


OUTSIDE = "is not among the settings that may be passed on"
BREAKING = "breaks exactly-once and is set by kgs itself"


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("sasl.jaas.config", "x", OUTSIDE),
        ("sasl.kerberos.keytab", "x", OUTSIDE),
        ("plugin.library.paths", "x", OUTSIDE),
        ("interceptor.classes", "x", OUTSIDE),
        ("debug", "x", OUTSIDE),
        ("enable.auto.commit", "true", BREAKING),
        ("auto.offset.reset", "latest", BREAKING),
        ("isolation.level", "read_uncommitted", BREAKING),
        ("enable.idempotence", "false", BREAKING),
        ("acks", "1", BREAKING),
    ],
)
def test_settings_that_may_not_be_passed_on_are_refused_by_name(problems_of, key, value, why):
    assert problems_of(kafka=with_client(f"{{{PLAIN}, {key}: {value}}}")) == [
        f"kafka.client: (value not shown): '{key}' {why}: remove it"
    ]


@pytest.mark.parametrize("protocol", ["", "security.protocol: PLAINTEXT, ", "security.protocol: ssl, "])
def test_a_password_needs_a_protocol_that_uses_it(problems_of, protocol):
    (found,) = problems_of(kafka=with_client(f"{{{protocol}sasl.username: u}}"))
    assert found.endswith("sasl.* is set but security.protocol is not SASL_SSL: set it, or remove sasl.*")


@pytest.mark.parametrize("value", ["null", "1.5", "[1]", "{a: b}"])
def test_values_that_librdkafka_cannot_take_get_one_line(problems_of, value):
    assert problems_of(kafka=with_client(f"{{client.rack: {value}}}")) == [
        "kafka.client.client.rack: (value not shown): give text, a whole number, true or false"
    ]


def test_good_settings_arrive_unchanged(settings_of):
    client = f"{{{PLAIN}, sasl.username: u, sasl.password: p, socket.keepalive.enable: true}}"
    assert settings_of(kafka=with_client(client)).kafka.client == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "p",
        "socket.keepalive.enable": True,
    }


OIDC = {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "kgs",
    "sasl.oauthbearer.client.secret": "s3cr3t",
    "sasl.oauthbearer.token.endpoint.url": "https://issuer.example/token",
}


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"sasl.mechanism": None}, "sasl.mechanism GSSAPI (Kerberos, the default) is not in Kafka's client here"),
        ({"sasl.mechanism": "gssapi"}, "sasl.mechanism GSSAPI (Kerberos, the default) is not in Kafka's client here"),
        ({"sasl.mechanism": "PLAIN"}, "'sasl.oauthbearer.client.id' needs sasl.mechanism OAUTHBEARER"),
        ({"sasl.oauthbearer.method": None}, "sasl.mechanism OAUTHBEARER: set sasl.oauthbearer.method to oidc"),
        ({"sasl.oauthbearer.client.id": None}, "sasl.mechanism OAUTHBEARER: set sasl.oauthbearer.client.id"),
        ({"sasl.oauthbearer.client.secret": None}, "sasl.mechanism OAUTHBEARER: set sasl.oauthbearer.client.secret"),
        (
            {"sasl.oauthbearer.token.endpoint.url": None},
            "sasl.mechanism OAUTHBEARER: set sasl.oauthbearer.token.endpoint.url",
        ),
        (
            {"sasl.oauthbearer.token.endpoint.url": "file:///etc/passwd"},
            "sasl.oauthbearer.token.endpoint.url: give http(s)://host/path",
        ),
        (
            {"sasl.oauthbearer.token.endpoint.url": "https://kgs:s3cr3t@issuer.example/token"},
            "sasl.oauthbearer.token.endpoint.url: put user and password into client.id and client.secret",
        ),
        (
            {"sasl.oauthbearer.extensions": "logicalCluster=lkc-1,pool"},
            "sasl.oauthbearer.extensions: write name=value,name=value",
        ),
    ],
)
def test_a_way_to_sign_in_that_cannot_work_is_refused(problems_of, other, told):
    client = {"security.protocol": "SASL_SSL", **OIDC, **other}
    given = json.dumps({key: value for key, value in client.items() if value is not None})
    (found,) = problems_of(kafka=with_client(given))
    assert told in found
    assert "s3cr3t" not in found


@pytest.mark.parametrize("extensions", ["", "a=1,b=c=d", "${file:/run/extensions}"])
def test_tokens_of_a_provider_are_taken(settings_of, extensions):
    client = {"security.protocol": "SASL_SSL", **OIDC, "sasl.oauthbearer.extensions": extensions}
    assert settings_of(kafka=with_client(json.dumps(client))).kafka.client == client
