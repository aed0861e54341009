"""The world around a credential: certificate, document, the CSI driver's mount, an Entra ID that checks assertions."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import sys
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from identity.credentials.certificate import IssuedCertificate, issue
from identity.credentials.document import encode

TENANT = "6f2c1e7a-0000-4000-8000-00000000aaaa"
CLIENT = "6f2c1e7a-0000-4000-8000-00000000bbbb"
ARM_SCOPE = "https://management.core.windows.net//.default"
LIFETIME = timedelta(days=90)


def certificate(*, age: timedelta = timedelta(minutes=5), lifetime: timedelta = LIFETIME) -> IssuedCertificate:
    """A certificate that became valid `age` ago."""
    return issue("unit-test", not_before=datetime.now(UTC) - age, lifetime=lifetime)


def document(issued: IssuedCertificate, authority: str = "https://login.microsoftonline.com/", **fields: Any) -> str:
    """The document of a certificate; `fields` replace arguments of `encode`."""
    return encode(
        **{
            "authentication_endpoint": authority,
            "client_id": CLIENT,
            "tenant_id": TENANT,
            "certificate_pem": issued.certificate_pem,
            "private_key_pem": issued.private_key_pem,
            "not_before": issued.not_before,
            "not_after": issued.not_after,
            "renew_after": issued.not_before + (issued.not_after - issued.not_before) / 2,
            "cannot_renew_after": issued.not_after,
            **fields,
        }
    )


class CsiMount:
    """A volume as the Secrets Store CSI driver writes it (pkg/util/fileutil/atomic_writer.go): files behind a link."""

    def __init__(self, directory: Path, name: str = "hc1-json") -> None:
        directory.mkdir(parents=True)
        self.directory = directory
        self.path = directory / name
        self._swaps = 0

    def write(self, content: str) -> None:
        """Publish `content`: write a new directory, rename the link over the old one, remove the old directory."""
        data = self.directory / "..data"
        old = data.readlink() if data.is_symlink() else None
        self._swaps += 1
        new = self.directory / f"..2026_11_21_{self._swaps}"
        new.mkdir()
        (new / self.path.name).write_text(content)
        link = self.directory / "..data_tmp"
        link.symlink_to(new.name)
        link.rename(data)
        if old is None:
            self.path.symlink_to(f"..data/{self.path.name}")
        else:
            (self.directory / old / self.path.name).unlink()
            (self.directory / old).rmdir()


@dataclass
class ServiceCall:
    """A request that reached ARM or the vault."""

    method: str
    path: str
    host: str
    body: bytes


@dataclass
class Entra:
    """Entra ID, ARM and Key Vault behind one https address. It grants a token only to a good assertion.

    `registered` holds the certificates it knows (PEM); `refusals` are answered to the next token requests, in order;
    each token request releases `asked`, waits while `answers` is not set and gets no answer while `drops`; `forbidden`
    paths are 403 for everybody. `connections` is what the token requests said of their connections.
    """

    directory: Path
    registered: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    forbidden: set[str] = field(default_factory=set)
    assertions: list[dict[str, Any]] = field(default_factory=list)
    connections: list[str | None] = field(default_factory=list)
    calls: list[ServiceCall] = field(default_factory=list)
    asked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    answers: threading.Event = field(default_factory=threading.Event)
    drops: bool = False
    attempts: int = 0

    def __post_init__(self) -> None:
        self.ca_file = self.directory / "ca.pem"
        server_file = self.directory / "server.pem"
        _write_server_certificate(self.ca_file, server_file)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(server_file)
        entra = self

        class Handler(_Handler):
            world = entra

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> Self:
        self.answers.set()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def grant(self, form: dict[str, str], token_endpoint: str) -> dict[str, Any]:
        """Entra's answer to a token request: a token, or an `error`."""
        if self.refusals:
            return _refused(self.refusals.pop(0))
        assertion = form["client_assertion"]
        header = jwt.get_unverified_header(assertion)
        known = {_thumbprint(pem): pem for pem in self.registered}
        # Go's MSAL writes standard base64; Entra takes both.
        signer = known.get(header.get("x5t", "").translate(str.maketrans("+/", "-_")))
        if signer is None:
            return _refused("AADSTS700027: The certificate is not registered on application. Trace ID: 1 Timestamp: 2")
        parsed = x509.load_pem_x509_certificate(signer.encode())
        try:
            claims = jwt.decode(assertion, parsed.public_key(), algorithms=["RS256", "PS256"], audience=token_endpoint)  # type: ignore[arg-type]
        except jwt.InvalidTokenError as error:
            return _refused(f"AADSTS700027: Client assertion contains an invalid signature: {error}.")
        self.assertions.append(
            {
                "header": header,
                "claims": claims,
                "scope": form["scope"],
                "client": form["client_id"],
                "claims_challenge": form.get("claims"),
            }
        )
        if claims["iss"] != form["client_id"] or claims["sub"] != form["client_id"]:
            return _refused("AADSTS700023: Client assertion audience, issuer and subject do not agree.")
        return {"token_type": "Bearer", "expires_in": 3600, "access_token": f"token-{_thumbprint(signer)}"}


def proof(entra: Entra, **changes: object) -> str:
    """The probe's `--proof`: a call that Entra's own address answers; `changes` replace its parts."""
    call = {"method": "GET", "url": f"{entra.url}/subscriptions/s/disks?api-version=1", "scope": ARM_SCOPE, **changes}
    return json.dumps(call)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the handler's own errors; a client that hung up is none."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    world: Entra
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        # Go's MSAL ends the address with a question mark.
        tenant, _, rest = self.path.lstrip("/").rstrip("?").partition("/")
        if rest != "v2.0/.well-known/openid-configuration":
            self._service()
        elif tenant != TENANT:
            self._answer(400, _refused(f"AADSTS90002: Tenant '{tenant}' not found.\r\nTrace ID: 1"))
        else:
            base = f"{self.world.url}/{tenant}"
            self._answer(
                200,
                {
                    "issuer": f"{base}/v2.0",
                    "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
                    "token_endpoint": f"{base}/oauth2/v2.0/token",
                },
            )

    def do_POST(self) -> None:
        if not self.path.endswith("/oauth2/v2.0/token"):
            return self._service()
        form = {key: values[0] for key, values in parse_qs(self._body().decode()).items()}
        self.world.attempts += 1
        self.world.connections.append(self.headers["Connection"])
        self.world.asked.release()
        self.world.answers.wait()
        if self.world.drops:
            self.close_connection = True
            return None
        answer = self.world.grant(form, f"{self.world.url}{self.path}")
        return self._answer(answer.pop("status", 200), answer)

    def _service(self) -> None:
        call = ServiceCall(self.command, self.path, self.headers["Host"], self._body())
        self.world.calls.append(call)
        if not self.headers.get("Authorization", "").startswith("Bearer token-"):
            challenge = f'Bearer authorization="{self.world.url}/{TENANT}", resource="https://vault.azure.net"'
            self._answer(
                401, {"error": {"code": "InvalidAuthenticationToken", "message": "no token"}}, challenge=challenge
            )
        elif self.path in self.world.forbidden:
            self._answer(403, {"error": {"code": "AuthorizationFailed", "message": "no permission\nover scope"}})
        else:
            self._answer(200, {})

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(self, status: int, document: dict[str, Any], *, challenge: str | None = None) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if challenge:
            self.send_header("WWW-Authenticate", challenge)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test's output clean."""


def _refused(description: str) -> dict[str, Any]:
    # Entra's status for a client it does not know, and for one whose assertion it does not believe.
    status = 400 if description.startswith("AADSTS700016") else 401
    return {"status": status, "error": "invalid_client", "error_description": description, "error_codes": [700027]}


def _thumbprint(pem: str) -> str:
    der = x509.load_pem_x509_certificate(pem.encode()).public_bytes(serialization.Encoding.DER)
    return base64.urlsafe_b64encode(hashlib.sha1(der).digest()).decode()  # noqa: S324


def _write_server_certificate(ca_file: Path, server_file: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    own = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = own.public_bytes(serialization.Encoding.PEM)
    ca_file.write_bytes(pem)
    server_file.write_bytes(
        pem
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
