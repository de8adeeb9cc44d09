"""How all verbs reach a gateway: with a certificate that nobody knows, or by a proxy."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chiron.generator.annotations import PLANNER, ROLE, WORKFLOW
from tests.serving import Answering, served

ECHO = {
    "name": "echo-wrap1",
    "replicas": 1,
    "annotations": {WORKFLOW: "echo", PLANNER: "pgp", ROLE: "entry"},
}


class Gateway(Answering):
    """A gateway with one workflow, also where a proxy is asked for it."""

    def do_GET(self) -> None:
        self.answer(200, [ECHO] if self.path.endswith("/system/functions") else {})

    def do_POST(self) -> None:
        self.answer(200, self.body())


@pytest.fixture
def url() -> Iterator[str]:
    with served(Gateway) as url:
        yield url


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that it signs itself, and its key."""
    x509 = pytest.importorskip("cryptography.x509", reason="needs cryptography")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    folder, key = tmp_path_factory.mktemp("tls"), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "here")])
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    now, day = datetime.now(UTC), timedelta(days=1)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(here, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(pem))
    plain = key.private_bytes(pem, private, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(plain)
    return folder / "certificate.pem", folder / "key.pem"


@pytest.fixture
def secured(files: tuple[Path, Path]) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    with served(Gateway, context) as url:
        yield url


def test_an_unknown_certificate_is_refused_with_the_mend(chiron, secured):
    result = chiron("invoke", "echo", "-g", secured)
    assert (result.status, result.stdout) == (2, "")
    assert "--tls-no-verify" in result.error()


def test_a_workflow_is_invoked_where_certificates_are_not_verified(chiron, secured):
    result = chiron("invoke", "echo", "-g", secured, "--tls-no-verify", stdin=b"hello")
    assert (result.status, result.stdout) == (0, "hello\n"), result.stderr
    assert len(result.stderr.splitlines()) == 1  # no warning for each request


def test_a_workflow_is_invoked_where_the_certificate_is_known(chiron, secured, files):
    known = {"REQUESTS_CA_BUNDLE": str(files[0])}
    result = chiron("invoke", "echo", "-g", secured, stdin=b"hello", **known)
    assert (result.status, result.stdout) == (0, "hello\n"), result.stderr


@pytest.mark.parametrize(("options", "ok"), [([], False), (["--tls-no-verify"], True)])
def test_doctor_looks_at_the_gateway_as_the_other_verbs_do(chiron, secured, options, ok):
    findings = chiron("doctor", "-g", secured, "--json", *options).json
    assert next(each["ok"] for each in findings if each["name"] == "gateway") is ok


def test_this_machine_is_reached_without_the_proxy(chiron, url, free_port):
    nobody = f"http://127.0.0.1:{free_port}"
    result = chiron("invoke", "echo", "-g", url, stdin=b"hello", HTTP_PROXY=nobody)
    assert (result.status, result.stdout) == (0, "hello\n"), result.stderr


def test_other_machines_are_reached_by_the_proxy(chiron, url):
    elsewhere = ("-g", "http://gateway.invalid")
    result = chiron("invoke", "echo", *elsewhere, stdin=b"hello", HTTP_PROXY=url)
    assert (result.status, result.stdout) == (0, "hello\n"), result.stderr
