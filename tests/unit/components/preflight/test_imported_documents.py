"""Credentials from elsewhere: documents of managed identities, and signing keys beside their issuers."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pulumi
import pytest

from components.preflight.imported_documents import read_existing_keys
from identity.azure.errors import AzureRefusedError
from identity.credentials import rfc3339
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.openid_documents import discovery_document, jwks_document
from identity.credentials.service_account_key import make, public_half
from tests.unit.components.program import Program
from tests.unit.components.refusals import refused
from tests.unit.components.world import REGISTRY, REGISTRY_IDENTITY, TENANT, VAULT, hosted_cluster, lookups, settings
from tests.unit.golden_report import reviewed
from tests.unit.identity.credentials import documents
from tests.unit.identity.credentials.world import certificate

_FIELD: Final = "imageRegistry"
_PLACE: Final = f"idstack:hostedClusters[0].identities.{_FIELD}.credential"
_DAY: Final = timedelta(days=1)
MARKER: Final = "MARKERMARKERMARKER"
_OF_ANY_SECRET: Final = {"cloud", "tenantId", "vaultId", "secretName", "tags", "ownerId"}
OTHER: Final = "cccccccc-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def issued() -> IssuedCertificate:
    return certificate()


def changed(issued: IssuedCertificate, **fields: Any) -> str:
    """The registry's document with other fields; None drops one."""
    return documents.changed(issued, **{"tenant_id": TENANT, "client_id": REGISTRY["clientId"], **fields})


def credential(text: str, file: Path) -> dict[str, str]:
    """The credential's configuration, with its document in a file."""
    file.write_text(text, encoding="utf-8")
    return {"file": str(file)}


def identity(credential: dict[str, str], name: str = "hc1-image-registry") -> dict[str, Any]:
    arm_id = REGISTRY_IDENTITY.replace("hc1-image-registry", name)
    return {"source": "managed-identity", "resourceId": arm_id, "credential": credential}


def report(program: Program, capfd: pytest.CaptureFixture[str], *texts: str, **arguments: Any) -> str:
    """The report of the program. None of `texts`, nor a line of a key in them, is in any output."""
    recorder = program(options={"refused": True}, **arguments)
    assert recorder.failure is not None
    assert {resource.type.partition(":")[0] for resource in recorder.registered} == {"pulumi"}, "only the providers"
    report_text = str(recorder.failure)
    error: BaseException | None = recorder.failure
    shown = "".join(capfd.readouterr())
    while error is not None:
        shown += f"{error!s} {error!r}"
        error = error.__cause__ or error.__context__
    for secret in (MARKER, *(line for text in texts for line in secret_lines(text))):
        assert secret not in shown
    return report_text


def secret_lines(text: str) -> list[str]:
    """The long words of a document's `client_secret`, and those of the private key in it."""
    encoded = re.findall(r"[0-9A-Za-z+/]{100,}={0,2}", text)
    keys = "".join(base64.b64decode(word).decode("ascii", "ignore").partition("-----END")[0] for word in encoded)
    return [*encoded, *re.findall(r"[0-9A-Za-z+/]{60,}", keys)]


def problems(report_text: str) -> list[str]:
    return re.findall(r"^    - (.*)$", report_text, re.MULTILINE)


def test_every_problem_of_a_document_is_in_the_report(
    program: Program, capfd: pytest.CaptureFixture[str], tmp_path: Path, issued: IssuedCertificate
) -> None:
    text = changed(issued, client_id=OTHER, tenant_id=OTHER, not_before="2020-01-01T00:00:00Z")
    clusters = [hosted_cluster(identities={_FIELD: identity(credential(text, tmp_path / "document.json"))})]

    report_text = report(program, capfd, text, hostedClusters=clusters)

    assert report_text.startswith(
        "The stack's configuration has 1 problem; nothing was changed.\n\n"
        f"{_PLACE}\n  found:    a credential document that cannot be used:\n    - "
    )
    assert report_text.endswith(
        "\n  accepted: the document that the MSI data plane issued for this identity, as it is"
        "\n  fix:      have it issued again"
    )
    fix = "as configured; take the credential of this identity, or correct the configuration"
    validity = " to ".join(map(rfc3339.render, (issued.not_before, issued.not_after)))
    assert problems(report_text) == [
        f'tenant_id: found "{OTHER}"; accepted: "{TENANT}", {fix}',
        f'client_id: found "{OTHER}"; accepted: "{REGISTRY["clientId"]}", {fix}',
        f"not_before: found a date before the certificate's validity ({validity}); accepted: a date within it; "
        "copy it from the certificate",
    ]


def mocked(issued: IssuedCertificate) -> str:
    """As ARO-HCP's mock of the MSI data plane writes it, for a certificate that has been pinned for some time."""
    ends = rfc3339.render(datetime.now(UTC) + 36525 * _DAY)
    return changed(
        issued,
        not_before=rfc3339.render(datetime.now(UTC) - _DAY),
        not_after=ends,
        renew_after=ends,
        cannot_renew_after=ends,
        client_secret_url="placeholder",
        mtls_authentication_endpoint="placeholder",
        custom_claims={"xms_az_nwperimid": ["placeholder"], "xms_az_tm": "placeholder"},
    )


def test_a_document_of_aro_hcps_mock_is_taken_with_warnings(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = certificate(age=30 * _DAY)
    warned: list[str] = []
    monkeypatch.setattr("pulumi.log.warn", warned.append)
    path = tmp_path / "document.json"
    clusters = [hosted_cluster(identities={_FIELD: identity(credential(mocked(pinned), path))})]

    recorder = program(hostedClusters=clusters, lookups_only=True, options={"refused": True})

    assert recorder.failure is None
    ends = json.loads(path.read_text(encoding="utf-8"))["not_after"]
    assert warned == [
        f"the credential document {path} is used although its not_after, {ends}, is later than its certificate's end, "
        f"{rfc3339.render(pinned.not_after)}, which counts",
        f"the credential document {path} is used although it is to be renewed after {ends}, when it has ended already",
    ]


def test_the_certificates_end_counts_whatever_the_document_says(program: Program, tmp_path: Path) -> None:
    pinned = certificate(age=30 * _DAY)
    document = credential(mocked(pinned), tmp_path / "document.json")

    recorder = program(hostedClusters=[hosted_cluster(identities={_FIELD: identity(document)})])

    [secret] = [resource for resource in recorder.all("idstack:index:CredentialSecret") if "file" in resource.inputs]
    assert secret.inputs["notAfter"] == rfc3339.render(pinned.not_after)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"enabled": False}, "enabled: found false, so that no pod can mount it; accepted: true; enable the secret"),
        (
            {"expires": 1577836800},
            'exp: found "2020-01-01T00:00:00Z", which is in the past; accepted: a time in the future; have it '
            "issued again and store it as a new version",
        ),
        (
            {"notBefore": 32472144000},
            'nbf: found "2999-01-01T00:00:00Z", which is in the future; accepted: a time in the past; wait until then',
        ),
    ],
    ids=["disabled", "expired", "not valid yet"],
)
def test_a_secret_in_the_vault_is_validated_by_its_metadata(
    program: Program, capfd: pytest.CaptureFixture[str], attributes: dict[str, Any], expected: str
) -> None:
    clusters = [hosted_cluster(identities={_FIELD: identity({"secretName": "ciro"})})]
    answer = {"properties": {"attributes": attributes}}

    report_text = report(program, capfd, hostedClusters=clusters, invokes=lookups(getSecret=answer))

    assert problems(report_text) == [expected]
    assert report_text.partition("\n\n")[2].startswith(f"{_PLACE}\n")


def test_a_secret_in_the_vault_may_be_valid_within_the_clock_skew(program: Program) -> None:
    now = datetime.now(UTC)
    attributes = {
        "enabled": True,
        "notBefore": (now + timedelta(minutes=4)).timestamp(),
        "expires": (now + _DAY).timestamp(),
    }
    clusters = [hosted_cluster(identities={_FIELD: identity({"secretName": "ciro"})})]

    answers = lookups(getSecret={"properties": {"attributes": attributes}})
    assert program(hostedClusters=clusters, invokes=answers, lookups_only=True).failure is None


def test_problems_of_several_credentials_and_clusters_are_in_one_report(
    program: Program, capfd: pytest.CaptureFixture[str], tmp_path: Path, issued: IssuedCertificate
) -> None:
    two = changed(issued, tenant_id=OTHER, client_secret=f"{MARKER}%")
    three = changed(issued, client_id=OTHER, not_before=None)
    second = {"name": "hc2", "infraID": "hc2-infra", "issuerURL": "https://hc2oidc.blob.core.windows.net/hc2oidc"}
    clusters = [
        hosted_cluster(
            identities={
                "disk": identity(credential(two, tmp_path / "two.json"), "disk"),
                "ingress": identity({"file": str(tmp_path / "nowhere.json")}, "ingress"),
                _FIELD: identity({"secretName": "ciro"}),
            }
        ),
        hosted_cluster(**second, identities={"disk": identity(credential(three, tmp_path / "three.json"), "disk2")}),
    ]
    answer = {"properties": {"attributes": {"enabled": False, "expires": 1577836800}}}

    report_text = report(program, capfd, two, three, hostedClusters=clusters, invokes=lookups(getSecret=answer))

    assert report_text.startswith("The stack's configuration has 4 problems; nothing was changed.\n\n")
    assert re.findall(r"^idstack:(\S+)$", report_text, re.MULTILINE) == [
        "hostedClusters[0].identities.imageRegistry.credential",
        "hostedClusters[0].identities.ingress.credential.file",
        "hostedClusters[0].identities.disk.credential",
        "hostedClusters[1].identities.disk.credential",
    ]
    assert [problem.partition(":")[0] for problem in problems(report_text)] == [
        *("enabled", "exp"),
        *("client_secret", "tenant_id"),
        *("not_before", "client_id"),
    ]


@pytest.mark.parametrize("object_encoding", ["utf-8", "hex"])
def test_a_good_document_is_named_by_its_path_and_copied_nowhere(
    program: Program, tmp_path: Path, issued: IssuedCertificate, object_encoding: str
) -> None:
    """It is JSON whatever form it will be stored in."""
    text = changed(issued)
    known = json.loads(text)
    path = tmp_path / "document.json"
    configured = {**identity(credential(text, path)), "objectEncoding": object_encoding}

    recorder = program(hostedClusters=[hosted_cluster(identities={_FIELD: configured})])

    secret = recorder.one("idstack:index:CredentialSecret", "hc1-image-registry-credential-secret").inputs
    shown = recorder.stack_outputs.values["hostedClusters"]["hc1"]["controlPlane"][_FIELD]
    of_the_document = {
        "file": str(path),
        "clientId": REGISTRY["clientId"],
        "thumbprint": issued.thumbprint,
        "notBefore": known["not_before"],
        "notAfter": known["not_after"],
        "renewAfter": known["renew_after"],
        "cannotRenewAfter": known["cannot_renew_after"],
        "objectEncoding": object_encoding,
    }
    assert {key: value for key, value in secret.items() if key not in _OF_ANY_SECRET} == of_the_document
    assert shown.items() >= {key: of_the_document[key] for key in ("notAfter", "renewAfter", "thumbprint")}.items()
    assert shown["generation"] is None
    everything = "\n".join(recorder.strings())
    assert len(secret_lines(text)) > 10
    assert [line for line in secret_lines(text) if line in everything] == []


ISSUER = "https://hc1oidc.blob.core.windows.net/hc1oidc"
KEY = "hostedClusters[0].serviceAccountSigningKey"
PEM, OTHER_KEY = make(2048), make(2048)


@dataclass
class FakeAzure:
    """What the vault and the issuer answer; None is a 404, an exception is raised."""

    secret: str | Exception | None = PEM
    documents: dict[str, Any] = field(
        default_factory=lambda: {
            f"{ISSUER}/.well-known/openid-configuration": discovery_document(ISSUER),
            f"{ISSUER}/openid/v1/jwks": jwks_document([public_half(OTHER_KEY).jwk, public_half(PEM).jwk]),
        }
    )

    def vault(self, *_: str) -> Mapping[str, str] | None:
        if isinstance(self.secret, Exception):
            raise self.secret
        return None if self.secret is None else {"value": self.secret}

    def public_document(self, url: str) -> Any:
        found = self.documents.get(url)
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> FakeAzure:
    fake = FakeAzure()
    monkeypatch.setattr("identity.azure.connection.connected", lambda *_: fake)
    return fake


def refusals(**key: str) -> list[tuple[str, str]]:
    found = read_existing_keys(settings(hostedClusters=[hosted_cluster(serviceAccountSigningKey=key)]), VAULT)
    return reviewed(found.problems)


def test_a_key_that_the_issuer_publishes_is_accepted(azure: FakeAzure, tmp_path: Path) -> None:
    file = tmp_path / "sa.pem"
    file.write_text(PEM)
    configured = settings(hostedClusters=[hosted_cluster(serviceAccountSigningKey={"file": str(file)})])

    assert refusals(vaultSecretName="sa") == []
    assert read_existing_keys(configured, VAULT).of_files == {"hc1": public_half(PEM).key_id}


def test_nothing_is_asked_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("identity.azure.connection.connected")

    assert read_existing_keys(settings(), VAULT).problems == []


@pytest.mark.parametrize("kid", ["published", "mine"], ids=["not published", "another key under its id"])
def test_a_key_that_is_not_published_is_refused(azure: FakeAzure, monkeypatch: pytest.MonkeyPatch, kid: str) -> None:
    azure.documents[f"{ISSUER}/openid/v1/jwks"] = jwks_document([{**public_half(OTHER_KEY).jwk, "kid": kid}])
    mine = public_half(PEM)
    monkeypatch.setattr(
        "components.preflight.imported_documents.public_half", lambda _: type(mine)("mine", mine.pem, mine.jwk)
    )

    assert refusals(vaultSecretName="sa") == [(KEY, "signing-key-not-in-issuer")]


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/.well-known/openid-configuration", None),
        ("/openid/v1/jwks", None),
        ("/openid/v1/jwks", b"{}"),
        ("/.well-known/openid-configuration", discovery_document("https://other.example.com")),
        ("/.well-known/openid-configuration", AzureRefusedError(f"{ISSUER} does not answer: no route")),
    ],
    ids=["no discovery", "no keys", "no JWKS", "another issuer", "silent"],
)
def test_an_issuer_that_entra_could_not_read_is_refused(azure: FakeAzure, path: str, answer: Any) -> None:
    azure.documents[f"{ISSUER}{path}"] = answer

    assert refusals(vaultSecretName="sa") == [("hostedClusters[0].issuerURL", "issuer-unusable")]


def test_a_secret_that_does_not_exist_is_refused(azure: FakeAzure) -> None:
    azure.secret = None

    assert refusals(vaultSecretName="sa") == [(f"{KEY}.vaultSecretName", "signing-key-secret-missing")]


def test_a_secret_that_holds_no_key_is_refused_without_showing_it(azure: FakeAzure) -> None:
    azure.secret = "MARKER"

    assert refusals(vaultSecretName="sa") == [(f"{KEY}.vaultSecretName", "signing-key-unusable")]


def test_a_reader_leaves_the_comparison_out(azure: FakeAzure, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "info", said.append)
    azure.secret = AzureRefusedError("reading it: 403", 403)

    assert refusals(vaultSecretName="sa") == []
    assert said == ["the signing key sa is not compared with its issuer: it cannot be read here"]


def test_a_file_that_cannot_be_read_or_holds_no_key_is_refused(azure: FakeAzure, tmp_path: Path) -> None:
    (tmp_path / "sa.pem").write_text("MARKER")

    assert refusals(file="missing.pem") == [(f"{KEY}.file", "signing-key-file-unreadable")]
    assert refusals(file=str(tmp_path / "sa.pem")) == [(f"{KEY}.file", "signing-key-unusable")]


def test_the_run_ends_with_all_problems_before_anything_is_registered(program: Program, azure: FakeAzure) -> None:
    azure.documents.clear()
    clusters = [hosted_cluster(serviceAccountSigningKey={"vaultSecretName": "sa"})]

    assert refused(program, hostedClusters=clusters) == [("hostedClusters[0].issuerURL", "issuer-unusable")]
