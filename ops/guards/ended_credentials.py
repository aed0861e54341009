"""Warns of credentials that no longer sign in, before a hosted cluster is deleted with them.

HyperShift deletes machines, volumes and load balancers with the control plane's identities. If it cannot delete a
machine for ten minutes, it removes the finalizer (openshift/hypershift pull request 8296, `DeleteOrphanedMachines` in
`internal/platform/azure/azure.go`): the HostedCluster is deleted, and the machine stays in Azure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from identity.access.azure_client import AzureClient
from identity.access.records import SecretMetadata
from identity.access.registered_certificates import registered_at
from identity.credentials import rfc3339
from identity.outputs import ControlPlaneIdentityOutput, HostedClusterOutput, StackOutputs
from ops.access.azure import deployer
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.world import vault_secrets

# The principal of a credential that the stack issues (`CredentialAddress.principal`).
_APPLICATION: Final = "entra-application"


def ended_credentials(engine: Engine, outputs: StackOutputs[str], clusters: Iterable[str]) -> str | None:
    """The warning for the deletion of these hosted clusters; None if all their credentials sign in.

    A failed read is a warning, too. Nothing is raised.
    """
    outputs_by_name = {
        name: output
        for name in clusters
        if (output := (outputs.get("hostedClusters") or {}).get(name)) and output.get("controlPlane")
    }
    if not outputs_by_name or "keyVaultId" not in outputs:
        return None
    try:
        with deployer(engine) as azure:
            secrets = {secret.name: secret for secret in vault_secrets.read(azure, outputs["keyVaultId"])}
            ended = [
                reason for name, secret in outputs_by_name.items() for reason in _ended(azure, name, secret, secrets)
            ]
    except CommandError as error:
        return (
            f"the credentials of {', '.join(outputs_by_name)} cannot be checked ({error}). {_consequence(engine.stack)}"
        )
    if not ended:
        return None
    return (
        f"HyperShift cannot sign in with all credentials: {'; '.join(ended)}. {_consequence(engine.stack)} "
        f"`idstack doctor --stack {engine.stack}` has the fix for each: apply it first"
    )


def _consequence(stack: str) -> str:
    return (
        "HyperShift deletes machines, volumes and load balancers with them. It gives up a machine that it cannot "
        "delete for ten minutes: the HostedCluster is deleted, and the machine stays in Azure. `idstack sweep --stack "
        f"{stack}` lists such machines."
    )


def _ended(
    azure: AzureClient, cluster: str, described: HostedClusterOutput[str], secrets: Mapping[str, SecretMetadata]
) -> Iterator[str]:
    for field, row in described["controlPlane"].items():
        secret = secrets.get(row["credentialsSecretName"])
        address = described["credentialsInUse"].get(field)
        why = _of_secret(row["credentialsSecretName"], secret) or _of_registration(
            azure, row, secret, is_application=address is not None and address["principal"] == _APPLICATION
        )
        if why:
            yield f"{field} of {cluster} ({why})"


def _of_secret(name: str, secret: SecretMetadata | None) -> str | None:
    """Why pods get no valid credential from the vault."""
    if secret is None:
        return f"the vault has no secret {name}"
    if not secret.enabled:
        return f"the secret {name} is disabled"
    if secret.expires is not None and secret.expires <= datetime.now(UTC):
        return f"it expired at {rfc3339.render(secret.expires)}"
    return None


def _of_registration(
    azure: AzureClient, row: ControlPlaneIdentityOutput[str], secret: SecretMetadata | None, *, is_application: bool
) -> str | None:
    """Why Entra ID refuses the certificate in the vault; only applications have a list of them."""
    if not is_application:
        return None
    certificates = registered_at(azure, f"/applications(appId='{row['clientID']}')")
    if certificates is None:
        return f"there is no application {row['clientID']}"
    current = (secret and secret.thumbprint) or row["thumbprint"]
    if current is None or current in {certificate.thumbprint for certificate in certificates}:
        return None
    return f"its certificate {current} is not registered at the application"
