"""Which certificates of a state were taken out of use since it was written: nobody can sign in with them, and the next
run issues others in their place (`provider/renewal_schedule.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from identity import resource_types
from identity.azure.client import AzureClient
from identity.credentials.secret_tags import THUMBPRINT
from identity.naming import secret_id
from ops.renewal.renewable import RenewedType
from ops.stack.state import StateResource, name_of


def withdrawn(azure: AzureClient, resources: Sequence[StateResource]) -> list[str]:
    """Name and thumbprint of each certificate that is neither registered at its application nor in the vault.

    One that a killed run had not registered yet is among them. Raises AzureRefusedError.
    """
    return [
        f"{name_of(each['urn'])}: {each['outputs']['thumbprint']}"
        for schedule in resources
        if schedule["type"] == RenewedType.SCHEDULE
        for each in _of(azure, schedule, resources)
    ]


def in_words(found: Sequence[str]) -> list[str]:
    """The lines for the user, none if nothing was found."""
    if not found:
        return []
    return [
        "These certificates of the state are not registered at Entra ID: they were taken out of use since, or never "
        "came into it. They stay out, and the next run issues others in their place:",
        *(f"  {each}" for each in found),
    ]


def _of(azure: AzureClient, schedule: StateResource, resources: Sequence[StateResource]) -> Iterator[StateResource]:
    siblings = [each for each in resources if each.get("parent") == schedule.get("parent") and each.get("outputs")]
    certificates = [each for each in siblings if each["type"] == RenewedType.CERTIFICATE]
    if not certificates:
        return
    inputs = schedule["inputs"]
    application = azure.directory_object(f"/applications(appId='{inputs['clientId']}')?$select=keyCredentials")
    if application is None:
        return
    registered = {str(each["keyId"]).lower() for each in application.get("keyCredentials") or []}
    missing = [each for each in certificates if each["outputs"]["keyId"].lower() not in registered]
    if not missing:
        return
    secret = azure.resource(secret_id(inputs["vaultId"], inputs["secretName"]), resource_types.KEY_VAULT_API) or {}
    delivered = (secret.get("tags") or {}).get(THUMBPRINT)
    yield from (each for each in missing if each["outputs"]["thumbprint"] != delivered)
