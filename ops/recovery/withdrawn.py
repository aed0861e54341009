"""Finds the certificates of a state that were withdrawn since it was written: they do not sign in, and the next run
replaces them (`provider/renewal_schedule.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from identity.azure.client import AzureClient
from identity.azure.registered_certificates import registered_at
from ops.renewal.renewable import RenewedType
from ops.stack.state import StateResource, name_of
from ops.world.azure import read_vault_secret


def message(azure: AzureClient, resources: Sequence[StateResource]) -> list[str]:
    """A line for each certificate that is neither registered at its application nor in the vault, below a heading.

    They include those that a killed run had not registered yet. Raises AzureRefusedError.
    """
    lines = [
        f"  {name_of(certificate['urn'])}: {certificate['outputs']['thumbprint']}"
        for schedule in resources
        if schedule["type"] == RenewedType.SCHEDULE
        for certificate in _of(azure, schedule, resources)
    ]
    heading = (
        "These certificates of the state are not registered at Entra ID: they were withdrawn since, or never "
        "registered. They stay withdrawn, and the next run replaces them:"
    )
    return [heading, *lines] if lines else []


def _of(azure: AzureClient, schedule: StateResource, resources: Sequence[StateResource]) -> Iterator[StateResource]:
    siblings = [
        resource
        for resource in resources
        if resource.get("parent") == schedule.get("parent") and resource.get("outputs")
    ]
    certificates = [sibling for sibling in siblings if sibling["type"] == RenewedType.CERTIFICATE]
    if not certificates:
        return
    inputs = schedule["inputs"]
    registered = registered_at(azure, f"/applications(appId='{inputs['clientId']}')")
    if registered is None:
        return
    known = {certificate.key_id.lower() for certificate in registered}
    missing = [certificate for certificate in certificates if certificate["outputs"]["keyId"].lower() not in known]
    if not missing:
        return
    secret = read_vault_secret(azure, inputs["vaultId"], inputs["secretName"])
    delivered = None if secret is None else secret.thumbprint
    yield from (certificate for certificate in missing if certificate["outputs"]["thumbprint"] != delivered)
