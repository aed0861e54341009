"""Which certificates of a state were taken out of use since it was written: nobody can sign in with them, and the next
run issues others in their place (`provider/renewal_schedule.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from identity.access.azure_client import AzureClient
from identity.access.registered_certificates import registered_at
from ops.renewal.renewable import RenewedType
from ops.stack.state import StateResource, name_of
from ops.world import vault_secrets


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
    registered = registered_at(azure, f"/applications(appId='{inputs['clientId']}')")
    if registered is None:
        return
    known = {each.key_id.lower() for each in registered}
    missing = [each for each in certificates if each["outputs"]["keyId"].lower() not in known]
    if not missing:
        return
    secret = vault_secrets.read_one(azure, inputs["vaultId"], inputs["secretName"])
    delivered = None if secret is None else secret.thumbprint
    yield from (each for each in missing if each["outputs"]["thumbprint"] != delivered)
