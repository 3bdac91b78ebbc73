"""How settings name files that secrets stand in."""

import pytest

from kgs_core.config.secret_files import files_of, reference_problems, secret_file

PLAIN = "security.protocol: SASL_SSL, sasl.mechanism: PLAIN, sasl.username: u"


def test_files_of_settings():
    settings = {"a": "${file:/s/a}", "ssl.ca.location": "/s/ca", "b": "x", "c": True, "d": "${file:/s/a}"}
    assert files_of(settings) == ("/s/a", "/s/ca")
    assert secret_file("${file:/s/a}") == "/s/a"
    assert secret_file("x${file:/s/a}") is None


@pytest.mark.parametrize("value", ["x${file:/s/a}", "${file:/s/a} ", "${file:a}", "${file:}", "${file:/s/../a}"])
def test_a_name_that_cannot_be_meant_is_refused(value):
    (problem,) = reference_problems({"sasl.password": value})
    assert problem.startswith("'sasl.password': ")


def test_a_password_in_a_file_arrives_as_its_name(settings_of):
    client = f"{{{PLAIN}, sasl.password: '${{file:/run/secrets/p}}'}}"
    found = settings_of(kafka=f"kafka: {{bootstrap_servers: 'a:1', client: {client}}}")
    assert found.kafka.client["sasl.password"] == "${file:/run/secrets/p}"


@pytest.mark.parametrize(
    ("client", "told"),
    [
        ("{security.protocol: SASL_SSL, sasl.mechanism: OAUTHBEARER}", None),
        ("{}", "kafka.token_function needs security.protocol SASL_SSL"),
        (
            "{security.protocol: SASL_SSL, sasl.mechanism: PLAIN}",
            "kafka.token_function needs sasl.mechanism OAUTHBEARER",
        ),
        (
            "{security.protocol: SASL_SSL, sasl.mechanism: OAUTHBEARER, sasl.oauthbearer.method: oidc}",
            "kafka.token_function gives the tokens: remove it, or 'sasl.oauthbearer.method'",
        ),
    ],
)
def test_a_function_needs_its_mechanism_and_no_other(problems_of, settings_of, client, told):
    kafka = f"kafka: {{bootstrap_servers: 'a:1', token_function: 'tokens:msk', client: {client}}}"
    if told is None:
        assert settings_of(kafka=kafka).kafka.token_function == "tokens:msk"
    else:
        (found,) = problems_of(kafka=kafka)
        assert told in found
