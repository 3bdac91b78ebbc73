"""What gives something away is taken, and said once at start."""

import logging

import pytest

from kgs_core.config.file import load_settings
from kgs_core.config.weak import weak_settings
from tests.configuration import settings_of, text_of

SASL = "sasl.mechanism: PLAIN, sasl.username: u, sasl.password: s3cr3t"


def sections_of(client="{}", options="{}"):
    return {
        "kafka": f"{{bootstrap_servers: '127.0.0.1:1', client: {client}}}",
        "lake": f"{{root: 's3://bucket/prefix', storage_options: {options}}}",
    }


def weak(**changes):
    return weak_settings(settings_of(**sections_of(**changes)))


@pytest.mark.parametrize(
    ("sections", "start"),
    [
        ({"client": f"{{security.protocol: SASL_PLAINTEXT, {SASL}}}"}, "kafka.client: security.protocol"),
        ({"client": f"{{security.protocol: sasl_plaintext, {SASL}}}"}, "kafka.client: security.protocol"),
        (
            {"client": "{security.protocol: SSL, ssl.endpoint.identification.algorithm: none}"},
            "kafka.client: ssl.endpoint.identification.algorithm",
        ),
        (
            {
                "client": "{security.protocol: SASL_SSL, sasl.mechanism: OAUTHBEARER, sasl.oauthbearer.method: oidc, "
                "sasl.oauthbearer.client.id: u, sasl.oauthbearer.client.secret: s3cr3t, "
                "sasl.oauthbearer.token.endpoint.url: 'http://a/t'}"
            },
            "kafka.client: sasl.oauthbearer.token.endpoint.url: the client's secret",
        ),
        ({"options": "{allow_http: 'true'}"}, "lake.storage_options: allow_http"),
        ({"options": "{AWS_ALLOW_HTTP: '1'}"}, "lake.storage_options: allow_http"),
        ({"options": "{allow_http: 'TRUE'}"}, "lake.storage_options: allow_http"),
        ({"options": "{google_allow_http: 'true'}"}, "lake.storage_options: allow_http"),
        ({"options": "{allow_invalid_certificates: 'true'}"}, "lake.storage_options: allow_invalid_certificates"),
    ],
)
def test_each_is_named_without_a_secret(sections, start):
    (line,) = weak(**sections)
    assert line.startswith(start)
    assert "s3cr3t" not in line


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"client": f"{{security.protocol: SASL_SSL, {SASL}}}"},
        {"client": "{security.protocol: SSL, ssl.endpoint.identification.algorithm: https}"},
        {"options": "{allow_http: 'false'}"},
    ],
)
def test_what_is_as_it_should_be_is_passed_over(sections):
    assert weak(**sections) == ()


def test_it_is_logged_once_though_the_file_is_read_twice(tmp_path, caplog):
    file = tmp_path / "kgs.yaml"
    file.write_text(text_of(**sections_of(options="{allow_http: 'true'}")))
    with caplog.at_level(logging.WARNING):
        load_settings(file, {})
        load_settings(file, {})
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(file) in caplog.text
