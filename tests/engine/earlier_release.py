"""Turns a stack into one that the release before brought up: its state, and its secrets in the vault.

`identity/state_schema.py` says what that release did otherwise.
"""

from __future__ import annotations

import base64
import copy
import json
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from identity.credentials import rfc3339
from identity.credentials.certificate import IssuedCertificate, issue
from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack

_OWN: Final = "idstack:index:"
_SECRET: Final = f"{_OWN}CredentialSecret"
_OLD_SECRET: Final = "azure-native:keyvault:Secret"
_REGISTRATION: Final = "azuread:index/applicationCertificate:ApplicationCertificate"
# How a state marks a value that is secret; an import encrypts it.
_SIGNATURE: Final = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}
_SETTINGS: Final = ("schema", "cloud", "tenantId", "vaultId", "secretName", "objectEncoding", "authorityHost")
# Of the release before's inputs, what this one has otherwise.
_ADDED: Final = {
    f"{_OWN}RenewalSchedule": (*_SETTINGS, "clientId", "delivered"),
    f"{_OWN}Certificate": ("schema", "cloud", "tenantId", "applicationId", "keyId"),
    f"{_OWN}SignInGate": ("schema", "thumbprint"),
    f"{_OWN}ClusterGate": ("schema",),
}

_Resource = dict[str, Any]


def make_earlier(stack: LocalStack, out_of_band: OutOfBand, *, written_at: datetime | None = None) -> None:
    """Rewrite state and vault, with the keys that the vault has; every spare is issued and registered.

    `written_at`: when that release wrote the secrets, if it was not just now.
    """
    state = json.loads(stack.pulumi("stack", "export").stdout)
    earlier = _Earlier(state["deployment"]["resources"], out_of_band, written_at)
    state["deployment"]["resources"] = list(earlier.resources())
    file = stack.state / "earlier.json"
    file.write_text(json.dumps(state).replace(f"${_SECRET}::", f"${_OLD_SECRET}::"), encoding="utf-8")
    stack.pulumi("stack", "import", "--file", str(file))
    file.unlink()


class _Earlier:
    def __init__(self, resources: list[_Resource], out_of_band: OutOfBand, written_at: datetime | None) -> None:
        self._written_at = written_at
        self._resources = copy.deepcopy(resources)
        self._out_of_band = out_of_band
        [self._azure] = {each["provider"] for each in resources if each["type"] == "azure-native:keyvault:Vault"}
        with out_of_band.secrets() as vault:
            self._values = {
                each["inputs"]["thumbprint"]: vault.get_secret(each["inputs"]["secretName"]).value or ""
                for each in resources
                if each["type"] == _SECRET
            }

    def resources(self) -> Iterator[_Resource]:
        """The resources in an order that the engine takes."""
        for each in self._resources:
            if each["type"] == _SECRET:
                yield self._secret(each)
            elif each["type"] == f"{_OWN}SignInGate":
                # What a spare needs comes before all gates.
                certificate, registration = (
                    self._sibling(each, kind) for kind in (f"{_OWN}Certificate", _REGISTRATION)
                )
                spare = _issued(certificate)
                key = _key(self._values[certificate["id"]])
                for found in (each["inputs"], each["outputs"]):
                    found |= {"certificatePem": certificate["outputs"]["certificatePem"], "privateKeyPem": key}
                yield _without_added(each)
                yield from self._spare(certificate, registration, each, spare)
            else:
                self._age(each)
                yield _without_added(each)

    def _age(self, each: _Resource) -> None:
        """What the release before wrote besides."""
        if each["type"] == f"{_OWN}RenewalSchedule":
            issued = each["inputs"]["a"]
            spare = {**issued, "notBefore": rfc3339.render(_start_of_spare(issued["notBefore"]))}
            for found in (each["inputs"], each["outputs"]):
                found |= {"b": spare, "renewal": "none yet"}
        elif each["type"] == f"{_OWN}Certificate":
            each["outputs"]["privateKeyPem"] = _key(self._values[each["id"]])
        elif each["type"] == _REGISTRATION:
            # It had no id of its own choice.
            del each["inputs"]["keyId"]

    def _sibling(self, of: _Resource, kind: str) -> _Resource:
        [found] = [each for each in self._resources if (each["type"], each.get("parent")) == (kind, of["parent"])]
        return found

    def _spare(
        self, certificate: _Resource, registration: _Resource, gate: _Resource, spare: IssuedCertificate
    ) -> Iterator[_Resource]:
        key_id = self._registered(registration, spare)
        key = _secret_value(spare.private_key_pem)
        for each, id in (
            (certificate, spare.thumbprint),
            (registration, registration["id"].rpartition("/")[0] + f"/{key_id}"),
            (gate, gate["id"][:-1] + "b"),
        ):
            made = json.loads(json.dumps(each).replace('-a"', '-b"'))
            for found in (made["inputs"], made["outputs"]):
                changed = {
                    "notBefore": rfc3339.render(spare.not_before),
                    "startDate": rfc3339.render(spare.not_before),
                    "notAfter": rfc3339.render(spare.not_after),
                    "endDate": rfc3339.render(spare.not_after),
                    "certificatePem": spare.certificate_pem,
                    "privateKeyPem": key,
                    "thumbprint": spare.thumbprint,
                    "keyId": key_id,
                    "registration": key_id,
                    "value": _secret_value(spare.certificate_pem),
                }
                found |= {name: value for name, value in changed.items() if name in found}
            yield _without_added({**made, "id": id})

    def _registered(self, registration: _Resource, spare: IssuedCertificate) -> str:
        """Register the certificate beside the others; returns its id."""
        application = registration["inputs"]["applicationId"]
        before = self._out_of_band.graph("GET", application)["keyCredentials"]
        der = x509.load_pem_x509_certificate(spare.certificate_pem.encode()).public_bytes(Encoding.DER)
        added = {
            "keyId": str(uuid.uuid4()),
            "type": "AsymmetricX509Cert",
            "usage": "Verify",
            "key": base64.b64encode(der).decode(),
        }
        self._out_of_band.graph("PATCH", application, {"keyCredentials": [*before, added]})
        return added["keyId"]

    def _secret(self, each: _Resource) -> _Resource:
        """azure-native's, and the version in the vault without the tags that this release writes."""
        inputs, value = each["inputs"], self._values[each["inputs"]["thumbprint"]]
        dates = {"renew_after": inputs["renewAfter"], "cannot_renew_after": inputs["cannotRenewAfter"]}
        tags = {**inputs["tags"], **dates}
        with self._out_of_band.secrets() as vault:
            written = vault.update_secret_properties(inputs["secretName"], tags=tags)
        assert written.created_on is not None
        assert written.not_before is not None
        assert written.expires_on is not None
        attributes = {
            "enabled": True,
            "notBefore": int(written.not_before.timestamp()),
            "expires": int(written.expires_on.timestamp()),
        }
        properties = {"contentType": "application/json", "attributes": attributes}
        uri = each["outputs"]["secretUri"]
        vault_id = inputs["vaultId"].split("/")
        return {
            **each,
            "type": _OLD_SECRET,
            "provider": self._azure,
            "inputs": {
                "properties": properties | {"value": _secret_value(value)},
                "resourceGroupName": vault_id[4],
                "secretName": inputs["secretName"],
                "tags": tags,
                "vaultName": vault_id[-1],
            },
            "outputs": {
                "name": inputs["secretName"],
                "properties": {
                    "contentType": "application/json",
                    "attributes": {
                        **attributes,
                        "created": int((self._written_at or written.created_on).timestamp()),
                    },
                    "secretUri": uri,
                    "secretUriWithVersion": f"{uri}/{written.version}",
                },
                "tags": tags,
                "type": "Microsoft.KeyVault/vaults/secrets",
            },
            "propertyDependencies": {"properties": (each.get("propertyDependencies") or {}).get("thumbprint") or []},
        }


def _without_added(each: _Resource) -> _Resource:
    added = _ADDED.get(each["type"], ())
    outputs = [name for name in added if name != "thumbprint"]
    return {
        **each,
        **({"inputs": {k: v for k, v in each["inputs"].items() if k not in added}} if "inputs" in each else {}),
        **({"outputs": {k: v for k, v in each["outputs"].items() if k not in outputs}} if "outputs" in each else {}),
    }


def _issued(certificate: _Resource) -> IssuedCertificate:
    """The spare of slot b: a second older than the certificate of slot a."""
    inputs = certificate["inputs"]
    lifetime = timedelta(days=inputs["lifetimeDays"])
    return issue(inputs["commonName"], not_before=_start_of_spare(inputs["notBefore"]), lifetime=lifetime)


def _start_of_spare(not_before: str) -> datetime:
    return rfc3339.parse(not_before) - timedelta(seconds=1)


def _key(stored: str) -> dict[str, str]:
    """The private key of a stored document, as a secret of the state."""
    bundle = base64.b64decode(json.loads(stored)["client_secret"]).decode()
    begin, end = bundle.index("-----BEGIN PRIVATE KEY"), bundle.index("-----END PRIVATE KEY")
    return _secret_value(bundle[begin:end] + "-----END PRIVATE KEY-----\n")


def _secret_value(text: str) -> dict[str, str]:
    return {**_SIGNATURE, "plaintext": json.dumps(text)}
