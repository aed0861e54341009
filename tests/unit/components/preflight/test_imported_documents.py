"""Credentials that were issued elsewhere, validated by the whole program, in the words that a user reads.

`tests/unit/identity/credentials/test_validate.py` has each rule.
"""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from identity.credentials import rfc3339
from identity.credentials.certificate import IssuedCertificate
from tests.unit.components.program import Program
from tests.unit.components.world import REGISTRY, REGISTRY_IDENTITY, TENANT, hosted_cluster, lookups
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
        (
            {"enabled": False},
            "enabled: found false, so that no pod can mount it; accepted: true; enable the secret",
        ),
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


@pytest.mark.parametrize("object_encoding", ["utf-8", "base64", "hex"])
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
    assert [line for line in secret_lines(text) if line in everything] == []
