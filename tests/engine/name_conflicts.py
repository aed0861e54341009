"""A stack whose names are taken, what takes them, and a program that has never met Azure."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from identity.clouds import LOCAL_SUBSCRIPTION_ID
from identity.naming import role_assignment_name, role_definition_id
from localcloud.testing.plugins import ArmSession
from tests.harness import LocalStack

GROUP: Final = f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/resourceGroups/identity-local"
_DNS: Final = f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/resourceGroups/dns-local"
MANAGED: Final = f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/resourceGroups/hc1-managed"
VAULT: Final = f"{GROUP}/providers/Microsoft.KeyVault/vaults/kv-idstack-local"
SECRET: Final = "ingress-hc1-json"
READER: Final = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
IDENTITIES: Final = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
# The small stack's ingress operator has the seeded managed identity.
_INGRESS: Final = f"{IDENTITIES}/hc1-image-registry"
_INGRESS_ROLE: Final = "0336e1d3-7a87-462b-b6db-342b63f7802c"

# What a program looks like that has never met Azure.
_NAIVE: Final = f"""
import pulumi
from pulumi_azure_native import authorization, managedidentity

group = {{"resource_group_name": "identity-local"}}
identity = managedidentity.UserAssignedIdentity("identity", resource_name_="naive", location="eastus", **group)
for number in (1, 2):
    managedidentity.FederatedIdentityCredential(
        f"credential-{{number}}",
        federated_identity_credential_resource_name=f"credential-{{number}}",
        resource_name_=identity.name,
        issuer="https://issuer.example.com",
        subject=str(number),
        audiences=["openshift"],
        **group,
    )
authorization.RoleAssignment(
    "assignment",
    role_assignment_name="{uuid.uuid4()}",
    scope="{MANAGED}",
    principal_id=identity.principal_id,
    role_definition_id="{role_definition_id(LOCAL_SUBSCRIPTION_ID, READER)}",
)
"""


@dataclass
class NameConflicts:
    """A stack whose names were taken, brought up by following the hints of each failed `up`.

    `refused` are the local ARM's refusals on the way, as (method, path, code); `printed` is all output.
    """

    stack: LocalStack
    session: ArmSession
    printed: str = ""
    commands: list[str] = field(default_factory=list)
    refused: list[tuple[str, str, str]] = field(default_factory=list)

    def up(self) -> bool:
        """One `up`, and if it fails the commands that `idstack up` prints; returns whether `up` succeeded."""
        done = self.stack.up(check=False)
        if done.returncode == 0:
            return True
        advised = self.stack.idstack("up", check=False)
        self.printed += done.stdout + advised.stdout + advised.stderr
        self.commands += self.stack.follow(advised.stderr)
        return False


def take_names(session: ArmSession) -> None:
    """Vault and secret are deleted and recoverable; HyperShift's CLI and somebody else have assigned roles before."""
    _vault_with_a_deleted_secret(session)
    principal = session.arm.get(_INGRESS, "2023-01-31")["properties"]["principalId"]
    assign(session, MANAGED, role_assignment_name("hc1-infra", "ingress", MANAGED), principal, _INGRESS_ROLE)
    assign(session, _DNS, str(uuid.uuid4()), principal, _INGRESS_ROLE)


def _vault_with_a_deleted_secret(session: ArmSession) -> None:
    properties = {
        "tenantId": session.client_config()["tenantId"],
        "sku": {"family": "A", "name": "standard"},
        "enableRbacAuthorization": True,
        "softDeleteRetentionInDays": 7,
    }
    session.arm.put(VAULT, "2024-11-01", {"location": "eastus", "properties": properties})
    session.arm.put(f"{VAULT}/secrets/{SECRET}", "2024-11-01", {"properties": {"value": "before"}})
    session.delete_from_vault("kv-idstack-local", "secrets", SECRET)
    session.arm.delete(VAULT, "2024-11-01")


def assign(session: ArmSession, scope: str, name: str, principal: str, role: str) -> None:
    """Assign a role as somebody beside the stack."""
    properties = {
        "principalId": principal,
        "principalType": "ServicePrincipal",
        "roleDefinitionId": role_definition_id(LOCAL_SUBSCRIPTION_ID, role),
    }
    path = f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}"
    session.arm.put(path, "2022-04-01", {"properties": properties})


def fresh_principal(session: ArmSession, name: str) -> str:
    """Object id of a new managed identity."""
    made = session.arm.put(f"{IDENTITIES}/{name}", "2023-01-31", {"location": "eastus"})
    return str(made["properties"]["principalId"])


def refusals(stack: LocalStack) -> list[tuple[str, str, str]]:
    """What the local ARM has refused so far: method, path and code."""
    log = (stack.state / "daemon.log").read_text(encoding="utf-8")
    return re.findall(r"arm refused (\w+) (\S+): \d+ (\w+)", log)


def purge(session: ArmSession) -> None:
    """Take the vault out of soft delete for good, so that its name is free."""
    place = f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/providers/Microsoft.KeyVault/locations/eastus"
    path = f"{place}/deletedVaults/kv-idstack-local/purge"
    assert session.arm._send("POST", path, "2024-11-01").is_success


def naive_refusals(stack: LocalStack, project: Path) -> list[tuple[str, str]]:
    """The naive program on the same cloud and engine: methods and codes of the refusals with which it fails."""
    (project / "Pulumi.yaml").write_text("name: naive\nruntime: python\n")
    (project / "__main__.py").write_text(_NAIVE)
    before = len(refusals(stack))
    stack.run("pulumi", "stack", "init", "naive", directory=project)
    done = stack.run("pulumi", "up", "--yes", "--skip-preview", "--continue-on-error", directory=project, check=False)
    assert done.returncode != 0
    return [(method, code) for method, _, code in refusals(stack)[before:]]
