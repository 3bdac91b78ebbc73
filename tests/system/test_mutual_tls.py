"""Clients that sign in with certificates (mutual TLS)."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from confluent_kafka import Producer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import PortError
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import admin_client, reading_client
from kgs_core.model import TopicPartition
from kgs_core.monitor.kafka.monitor import measure
from kgs_core.monitor.speeds import Measure
from tests.system.monitoring import settings_of
from tests.system.test_native_fetch import KINDS
from tests.waiting import wait_until

PEM, PLAIN = serialization.Encoding.PEM, serialization.NoEncryption()


class Authority:
    """An authority, and the certificates it gives out."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = folder / f"{name}.pem"
        self.certificate.write_bytes(self._signed(self._name, self._key, is_authority=True).public_bytes(PEM))

    def issued(self, name: str) -> tuple[Path, Path]:
        """Files of a certificate for 127.0.0.1 in this name, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        paths = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        paths[0].write_bytes(self._signed(subject, key, is_authority=False).public_bytes(PEM))
        paths[1].write_bytes(key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, PLAIN))
        return paths

    def _signed(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool) -> x509.Certificate:
        now = datetime.now(UTC)  # noqa: TID251 - as the broker reads it
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
        builder = builder.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        return builder.add_extension(names, critical=False).sign(self._key, hashes.SHA256())


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that the broker trusts."""
    return Authority(tmp_path_factory.mktemp("authority"), "trusted")


@pytest.fixture(scope="module")
def guarded(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker that wants certificates: a process of its own, since the others ask for none."""
    certificate, key = authority.issued("broker")
    store = authority.folder / "broker.pem"
    store.write_bytes(key.read_bytes() + certificate.read_bytes())
    settings = {
        "listener.security.protocol.map": "CLIENT:SSL,CONTROLLER:PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.client.auth": "required",
    }
    with EmbeddedKafka.start(tmp_path_factory.mktemp("tls"), settings=settings, log=print) as kafka:
        yield kafka


def client(authority: Authority, certificate: Path, key: Path, *, as_text: bool = False) -> dict[str, str]:
    if as_text:
        return {
            "security.protocol": "SSL",
            "ssl.ca.pem": authority.certificate.read_text(),
            "ssl.certificate.pem": certificate.read_text(),
            "ssl.key.pem": key.read_text(),
        }
    return {
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority.certificate),
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(key),
    }


@pytest.mark.slow(30)
@pytest.mark.parametrize("as_text", [False, True], ids=["files", "text"])
def test_every_client_signs_in(authority: Authority, guarded: EmbeddedKafka, topic_prefix: str, as_text: bool) -> None:
    tp = TopicPartition(f"{topic_prefix}a", 0)
    own = client(authority, *authority.issued("kgs"), as_text=as_text)
    settings = settings_of(guarded.bootstrap_servers, topic_prefix, own)
    assert KafkaAdmin(admin_client(settings)).create_topic(tp.topic, 1)
    producer = Producer(admin_client(settings))
    for _ in range(100):
        producer.produce(tp.topic, b"x" * 1000)
    assert producer.flush(20) == 0
    for kind in KINDS:
        reader = kind(reading_client(settings))
        found = wait_until(lambda gather=reader.gather: gather({tp: 0}, 10**6, 0.2, 1.0).ranges, 20, "records come")
        reader.close()
        assert found[tp].end == 100
    assert measure(settings).reading.measure is Measure.LOG_DIRS


@pytest.mark.slow
@pytest.mark.parametrize("what", ["none", "of a stranger"])
def test_another_certificate_is_refused(
    authority: Authority, guarded: EmbeddedKafka, topic_prefix: str, tmp_path: Path, what: str
) -> None:
    own = client(authority, *Authority(tmp_path, "stranger").issued("kgs"))
    if what == "none":
        own = {key: value for key, value in own.items() if key in ("security.protocol", "ssl.ca.location")}
    settings = settings_of(guarded.bootstrap_servers, topic_prefix, own)
    with pytest.raises(PortError, match=r"check security.protocol and the certificates|check that the brokers are up"):
        KafkaAdmin(admin_client(settings), 6.0).list_topics()
