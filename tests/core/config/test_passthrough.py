"""What may be handed on to librdkafka."""

import pytest


@pytest.mark.parametrize(
    "key",
    ["sasl.jaas.config", "sasl.oauthbearer.token.endpoint.url", "plugin.library.paths", "interceptor.classes", "debug"],
)
def test_settings_outside_the_list_are_refused_by_name(problems_of, key):
    found = problems_of(kafka=f"kafka: {{bootstrap_servers: 'a:1', client: {{security.protocol: SASL_SSL, {key}: x}}}}")
    assert found == [
        f"kafka.client: (value not shown): '{key}' is not among the settings that may be passed on: remove it"
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("enable.auto.commit", "true"),
        ("auto.offset.reset", "latest"),
        ("isolation.level", "read_uncommitted"),
        ("enable.idempotence", "false"),
        ("acks", "1"),
    ],
)
def test_settings_that_break_the_guarantee(problems_of, key, value):
    found = problems_of(kafka=f"kafka: {{bootstrap_servers: 'a:1', client: {{{key}: {value}}}}}")
    assert found == [
        f"kafka.client: (value not shown): '{key}' breaks exactly-once and is set by kgs itself: remove it"
    ]


@pytest.mark.parametrize("protocol", ["", "security.protocol: PLAINTEXT, ", "security.protocol: ssl, "])
def test_a_password_needs_a_protocol_that_uses_it(problems_of, protocol):
    (found,) = problems_of(kafka=f"kafka: {{bootstrap_servers: 'a:1', client: {{{protocol}sasl.username: u}}}}")
    assert found.endswith("sasl.* is set but security.protocol is not SASL_SSL: set it, or remove sasl.*")


@pytest.mark.parametrize("path", ["/etc/passwd", "/run/secrets/../passwd", "ca.pem", "/run/secretsx/ca.pem"])
def test_files_outside_the_secrets_folder(problems_of, path):
    client = f"client: {{security.protocol: SSL, ssl.ca.location: {path}}}"
    (found,) = problems_of(kafka=f"kafka: {{bootstrap_servers: 'a:1', secrets_dir: /run/secrets, {client}}}")
    assert found.endswith("'ssl.ca.location' must lie under secrets_dir /run/secrets")


@pytest.mark.parametrize("path", ["secrets", "''", "/run/../etc"])
def test_the_secrets_folder_is_one_place(problems_of, path):
    (found,) = problems_of(kafka=f"kafka: {{bootstrap_servers: 'a:1', secrets_dir: {path}}}")
    assert found.endswith("give an absolute path without '..'")


@pytest.mark.parametrize("value", ["null", "1.5", "[1]", "{a: b}"])
def test_values_that_librdkafka_cannot_take_get_one_line(problems_of, value):
    assert problems_of(kafka=f"kafka: {{bootstrap_servers: 'a:1', client: {{client.rack: {value}}}}}") == [
        "kafka.client.client.rack: (value not shown): give text, a whole number, true or false"
    ]


def test_good_settings_arrive_unchanged(settings_of):
    client = "{security.protocol: SASL_SSL, sasl.username: u, sasl.password: p, socket.keepalive.enable: true}"
    settings = settings_of(kafka=f"kafka: {{bootstrap_servers: 'a:1,b:2', client: {client}}}")
    assert settings.kafka.client == {
        "security.protocol": "SASL_SSL",
        "sasl.username": "u",
        "sasl.password": "p",
        "socket.keepalive.enable": True,
    }
