"""Settings that are taken although they give something away: what people are told of them at start. Pure."""

from collections.abc import Iterator, Mapping

from kgs_core.config.passthrough import Scalar
from kgs_core.config.settings import Settings

_YES = ("true", "1", "yes", "on")


def weak_settings(settings: Settings) -> tuple[str, ...]:
    """One line for each, without any value of a secret; none where all is as it should be."""
    return (*_of_kafka(settings.kafka.client), *_of_lake(settings.lake.storage_options))


def _of_kafka(client: Mapping[str, Scalar]) -> Iterator[str]:
    if str(client.get("security.protocol", "")).upper() == "SASL_PLAINTEXT":
        yield (
            "kafka.client: security.protocol SASL_PLAINTEXT: password and records cross the network readable for "
            "everybody: use SASL_SSL"
        )
    if str(client.get("sasl.oauthbearer.token.endpoint.url", "")).lower().startswith("http:"):
        yield (
            "kafka.client: sasl.oauthbearer.token.endpoint.url: the client's secret and tokens cross the network "
            "unencrypted: use https"
        )
    if str(client.get("ssl.endpoint.identification.algorithm", "https")).lower() == "none":
        yield (
            "kafka.client: ssl.endpoint.identification.algorithm none: anyone with a certificate of the same "
            "authority can pose as the broker: remove it"
        )


def _of_lake(options: Mapping[str, Scalar]) -> Iterator[str]:
    names = {name.lower().removeprefix("aws_").removeprefix("azure_").removeprefix("google_"): str(v).lower()
             for name, v in options.items()}  # fmt: skip
    if names.get("allow_http", "false") in _YES:
        yield (
            "lake.storage_options: allow_http: rows cross the network unencrypted, and can be changed "
            "on their way: use https"
        )
    if names.get("allow_invalid_certificates", "false") in _YES:
        yield (
            "lake.storage_options: allow_invalid_certificates: anyone on the way can pose as the store: remove it, and "
            "name its authority's certificate in SSL_CERT_FILE"
        )
