"""The certificate under which every service of the local cloud answers, and the CA that clients have to trust."""

from __future__ import annotations

import ipaddress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from localcloud.core import clock
from localcloud.core.certificates import private_pem
from localcloud.core.clouds import certificate_names
from localcloud.core.files import write_private, write_public

_HOSTS: Final = ("localhost", *certificate_names())
_LIFETIME = timedelta(days=3650)
_RENEWED_BEFORE = timedelta(days=30)
_EXPIRED_BEFORE = timedelta(days=1)
_BACKDATED = timedelta(hours=1)  # for clients in containers whose clock runs late


def ensure_certificate(ca_file: Path, server_file: Path) -> None:
    """Make the files unless they are there, whole, for the names of today, and good for another month.

    `ca_file` is public; `server_file` (0600) holds the server's key and certificate, and `expired_file` beside it the
    same with dates that have passed. The CA's key signs these two and is never written, so no other certificate can
    be issued that clients of this local cloud trust.
    """
    if ca_file.exists() and expired_file(server_file).exists() and _is_good(server_file):
        return
    now = clock.now()
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = _subject("local cloud CA")
    ca = (
        _builder(ca_name, ca_name, ca_key.public_key(), ca_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    private = private_pem(key)
    for file, issued in ((expired_file(server_file), now - _LIFETIME - _EXPIRED_BEFORE), (server_file, now)):
        builder = _builder(_subject("localhost"), ca_name, key.public_key(), ca_key.public_key(), issued)
        write_private(file, private + _server(builder, ca_key).public_bytes(serialization.Encoding.PEM))
    write_public(ca_file, ca.public_bytes(serialization.Encoding.PEM))


def expired_file(server_file: Path) -> Path:
    """The server's key with a certificate that expired a day before its creation, 0600."""
    return server_file.with_name(f"expired-{server_file.name}")


def _server(builder: x509.CertificateBuilder, ca_key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    names = [*map(x509.DNSName, _HOSTS), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    return (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(ca_key, hashes.SHA256())
    )


def _is_good(server_file: Path) -> bool:
    try:
        server = x509.load_pem_x509_certificate(server_file.read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    hosts = names.get_values_for_type(x509.DNSName)
    return server.not_valid_after_utc - _RENEWED_BEFORE > clock.now() and set(hosts) == set(_HOSTS)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer_key: ec.EllipticCurvePublicKey,
    now: datetime,
) -> x509.CertificateBuilder:
    # Both key identifiers: Python from 3.13 on verifies with VERIFY_X509_STRICT, which wants them (RFC 5280 4.2.1.1-2).
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
