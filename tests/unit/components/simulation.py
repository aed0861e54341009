"""What the providers would answer: ids and outputs, each a function of the resource's name."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import Any

from pulumi.runtime import rpc

from identity.credentials import rfc3339
from identity.credentials.certificate import IssuedCertificate, issue

# How the wire spells a value that a preview does not know.
UNKNOWN = rpc.UNKNOWN

_SLOTS: Mapping[str, Mapping[str, Any]] = {
    "a": {"generation": 1, "notBefore": "2026-11-21T08:55:00Z", "validDays": 90},
    "b": {"generation": 2, "notBefore": "2027-01-05T08:55:00Z", "validDays": 90},
}
SCHEDULE: Mapping[str, Any] = {"current": "a", "a": _SLOTS["a"], "b": {}, "renewal": "first certificate"}
# What the schedule answers after the first renewal: both slots have a certificate.
RENEWED: Mapping[str, Any] = {"current": "b", "b": _SLOTS["b"], "renewal": "slot b, due"}

# The project's own plugin computes these before anything is created.
_PLANNED_OUTPUTS: Mapping[str, frozenset[str]] = {
    "idstack:index:RenewalSchedule": frozenset(SCHEDULE),
    "idstack:index:Certificate": frozenset({"notAfter"}),
}

PROVEN_AT = "2026-11-21T09:00:30Z"

_issuing = threading.Lock()


def a_uuid(*words: str) -> str:
    """The id the simulation gives to the thing of that name."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(words)))


def issued(slot: str) -> IssuedCertificate:
    """One real certificate per slot, shared by all tests: a key costs 40 ms."""
    with _issuing:  # registrations come from many threads
        return _issue(slot)


@cache
def _issue(slot: str) -> IssuedCertificate:
    return issue("simulated", not_before=rfc3339.parse(_SLOTS[slot]["notBefore"]), lifetime=timedelta(days=90))


def simulated(resource_type: str, name: str, inputs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Id and outputs of a resource."""
    match resource_type:
        case "azure-native:keyvault:Vault":
            vault_uri = f"https://{inputs['vaultName']}.vault.azure.net/"
            return f"/vaults/{name}", {"properties": {**inputs["properties"], "vaultUri": vault_uri}}
        case "azure-native:managedidentity:UserAssignedIdentity":
            outputs = {"clientId": a_uuid(name, "client"), "principalId": a_uuid(name, "principal")}
            return f"/identities/{inputs['resourceName']}", outputs
        case "azuread:index/application:Application":
            return f"/applications/{a_uuid(name)}", {"clientId": a_uuid(name, "client"), "objectId": a_uuid(name)}
        case "azuread:index/servicePrincipal:ServicePrincipal":
            return f"/servicePrincipals/{a_uuid(name)}", {"objectId": a_uuid(name)}
        case "azuread:index/applicationCertificate:ApplicationCertificate":
            return a_uuid(name), {}
        case "idstack:index:RenewalSchedule":
            return a_uuid(name), dict(SCHEDULE)
        case "idstack:index:Certificate":
            certificate = issued(name[-1])
            return a_uuid(name), {
                "certificatePem": certificate.certificate_pem,
                "thumbprint": certificate.thumbprint,
                "keyId": a_uuid(certificate.thumbprint),
                "notAfter": rfc3339.render(certificate.not_after),
            }
        case "azure-native:containerservice:ManagedCluster":
            return f"/clusters/{inputs['resourceName']}", {"name": inputs["resourceName"]}
        case "idstack:index:ClusterGate":
            return a_uuid(name), {"openedAt": "2026-11-21T09:00:30Z"}
        case "idstack:index:SigningKey":
            public = {"keyId": a_uuid(name), "jwk": {"kid": a_uuid(name)}, "publicKeyPem": f"PUBLIC KEY of {name}"}
            return a_uuid(name), {**public, "version": "1"}
        case "idstack:index:EncryptionKey":
            return a_uuid(name), {"keyId": a_uuid(name), "version": "1"}
        case "idstack:index:StackOwner":
            return a_uuid(name), {"ownerId": a_uuid("owner")}
        case "idstack:index:SignInGate":
            return a_uuid(name), {"provenAt": PROVEN_AT}
        case "idstack:index:CredentialSecret":
            secret_uri = (
                f"https://{inputs['vaultId'].rpartition('/')[2]}.vault.azure.net/secrets/{inputs['secretName']}"
            )
            outputs = {"version": "1", "secretUri": secret_uri, "deliveredAt": "2026-11-21T09:00:31Z"}
            return f"{inputs['vaultId']}/secrets/{inputs['secretName']}", outputs
        case _:
            return a_uuid(resource_type, name), {}


def planned_outputs(resource_type: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs as far as a preview knows them."""
    known = _PLANNED_OUTPUTS.get(resource_type, frozenset())
    return {key: value if key in known else _planned_outputs(value, inputs.get(key)) for key, value in outputs.items()}


def _planned_outputs(value: Any, given: Any) -> Any:
    if isinstance(value, dict) and isinstance(given, dict):
        return {key: _planned_outputs(part, given.get(key)) for key, part in value.items()}
    return UNKNOWN if given is None else given
