"""What HyperShift's scripts and its command line make for a hosted cluster, by the same requests and in the same shape.

`contrib/managed-azure/setup_MIv3_kv.sh`, `setup_dataplane_identities.sh`, `setup_aks_cluster.sh` and `hypershift create
cluster azure --assign-service-principal-roles` at 3ee9615; the Azure CLI's requests for `az ad sp create-for-rbac
--create-cert --keyvault`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

from identity.catalogue import CONTROL_PLANE, DATA_PLANE
from identity.catalogue_rows import RoleGrant, Scope
from identity.naming import role_assignment_name
from identity.roles import KEY_VAULT_SECRETS_USER_ROLE
from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack

PREFIX: Final = "kv-scripted"
VAULT: Final = PREFIX
_GROUP: Final = "identity-local"
_KEY_VAULT_ADMINISTRATOR: Final = "00482a5a-887f-4fb3-b363-3b7fe8e74483"
# The data plane's names in the script, by field of the HostedCluster API.
_MANAGED: Final[Mapping[str, tuple[str, str]]] = {
    "diskMSIClientID": (f"azure-disk-MI-{PREFIX}", "node"),
    "fileMSIClientID": (f"azure-file-MI-{PREFIX}", "node"),
    "imageRegistryMSIClientID": (f"image-registry-MI-{PREFIX}", "registry"),
}


class HyperShiftScripts(OutOfBand):
    """Runs the scripts' requests as the local stack's deployer; the cluster is `hc1` of the seed."""

    def __init__(self, stack: LocalStack, directory: Path) -> None:
        super().__init__(stack)
        self.control_plane_file = directory / "cp-output.json"
        self.data_plane_file = directory / "dp-output.json"
        local = stack.environment
        self._tenant_id = local.tenant_id
        self.deployer = local.deployer_client_id
        self._subscription_id = local.subscription_id
        self.group = f"/subscriptions/{local.subscription_id}/resourceGroups/{_GROUP}"
        self._vault = f"{self.group}/providers/Microsoft.KeyVault/vaults/{VAULT}"
        self._authority = local.authority_host

    def run(self, infra_id: str, issuer_url: str, add_on_object_id: str) -> None:
        """Make everything and write both files."""
        self._create_vault()
        identities = {
            row.field: self._principal(row.secret_stem, row.component, row.hypershift, infra_id)
            for row in CONTROL_PLANE
            if row.setting is None and row.enabled_by_default
        }
        identities["velero"] = self._principal("velero", "", None, infra_id)
        vault = {"name": VAULT, "tenantID": self._tenant_id}
        self.control_plane_file.write_text(json.dumps({**identities, "managedIdentitiesKeyVault": vault}, indent=4))
        managed = {row.field: self._managed_identity(row.field, issuer_url) for row in DATA_PLANE}
        for row in DATA_PLANE:
            self.assign_as_the_cli(infra_id, row.component, row.hypershift, managed[row.field]["principalId"])
        lines = ",\n".join(f'  "{field}": {identity["clientId"]}' for field, identity in managed.items())
        self.data_plane_file.write_text(f"{{\n{lines}\n}}\n")
        self.let_read_the_vault(add_on_object_id)

    def let_read_the_vault(self, object_id: str) -> None:
        """As `setup_aks_cluster.sh` does for the add-on of the management cluster."""
        self.assign(self.group, KEY_VAULT_SECRETS_USER_ROLE.guid, object_id)

    def assign_as_the_cli(self, infra_id: str, component: str, grant: RoleGrant, principal_id: str) -> None:
        """As `hypershift create cluster azure` does."""
        for scope in self._scopes(grant):
            self.assign(scope, grant.role.guid, principal_id, role_assignment_name(infra_id, component, scope))

    def credential_pem(self, stem: str) -> bytes:
        """Key and certificate that a script has made, in PEM."""
        found = self.vault("GET", VAULT, f"/secrets/{stem}-{PREFIX}")
        key, certificate, _ = pkcs12.load_key_and_certificates(base64.b64decode(found["value"]), None)
        assert key is not None
        assert certificate is not None
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return pem + certificate.public_bytes(Encoding.PEM)

    def _create_vault(self) -> None:
        properties = {
            "tenantId": self._tenant_id,
            "sku": {"family": "A", "name": "standard"},
            "accessPolicies": [],
            "enabledForDeployment": False,
            "enableRbacAuthorization": True,
            "enableSoftDelete": True,
            "softDeleteRetentionInDays": 90,
            "publicNetworkAccess": "Enabled",
            "networkAcls": {"bypass": "AzureServices", "defaultAction": "Allow"},
        }
        self.arm("PUT", self._vault, "2024-11-01", {"location": "eastus", "properties": properties})
        self.administer(self._vault)
        while not self._may_write():
            pass  # a new role takes a moment

    def administer(self, scope: str) -> str:
        """Let the deployer do everything in vaults; returns its object id."""
        deployer: str = self.graph("GET", f"/servicePrincipals(appId='{self.deployer}')")["id"]
        self.assign(scope, _KEY_VAULT_ADMINISTRATOR, deployer)
        return deployer

    def _may_write(self) -> bool:
        try:
            self.vault("GET", VAULT, "/certificates")
        except AssertionError:
            return False
        return True

    def _principal(self, stem: str, component: str, grant: RoleGrant | None, infra_id: str) -> dict[str, str]:
        name = f"{stem}-{PREFIX}"
        policy = {
            "issuer": {"name": "Self"},
            "key_props": {"exportable": True, "kty": "RSA", "key_size": 2048, "reuse_key": True},
            "lifetime_actions": [{"action": {"action_type": "AutoRenew"}, "trigger": {"days_before_expiry": 90}}],
            "secret_props": {"contentType": "application/x-pkcs12"},
            "x509_props": {"subject": f"CN={name}", "validity_months": 12},
        }
        self.vault("POST", VAULT, f"/certificates/{name}/create", {"policy": policy})
        certificate = self.vault("GET", VAULT, f"/certificates/{name}")
        dates = certificate["attributes"]
        key = {
            "type": "AsymmetricX509Cert",
            "usage": "Verify",
            "key": certificate["cer"],
            "startDateTime": _moment(dates["nbf"]),
            "endDateTime": _moment(dates["exp"]),
        }
        application = self.graph("POST", "/applications", {"displayName": name, "keyCredentials": [key]})
        principal = self.graph("POST", "/servicePrincipals", {"appId": application["appId"]})
        secret = self.vault("GET", VAULT, f"/secrets/{name}")
        document = {
            "authentication_endpoint": self._authority,
            "client_id": application["appId"],
            "client_secret": secret["value"],
            "tenant_id": self._tenant_id,
            "not_before": _shown(dates["nbf"]),
            "not_after": _shown(dates["exp"]),
        }
        written = {"value": json.dumps(document, indent=8), "tags": {"file-encoding": "utf-8"}}
        self.vault("PUT", VAULT, f"/secrets/{name}-json", written)
        if grant is not None:
            self.assign_as_the_cli(infra_id, component, grant, principal["id"])
        return {
            "certificateName": name,
            "clientID": application["appId"],
            "credentialsSecretName": f"{name}-json",
            "objectEncoding": "utf-8",
        }

    def _managed_identity(self, field: str, issuer_url: str) -> dict[str, Any]:
        name, suffix = _MANAGED[field]
        [subject] = [
            account.subject
            for row in DATA_PLANE
            if row.field == field
            for account in row.subjects
            if account.suffix == suffix
        ]
        identity = f"{self.group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}"
        made: dict[str, Any] = self.arm("PUT", identity, "2023-01-31", {"location": "westeurope"})["properties"]
        federated = {"issuer": issuer_url, "subject": subject, "audiences": ["openshift"]}
        self.arm(
            "PUT", f"{identity}/federatedIdentityCredentials/{name}-fed-id", "2023-01-31", {"properties": federated}
        )
        return made

    def _scopes(self, grant: RoleGrant) -> Iterator[str]:
        groups = {Scope.MANAGED: "hc1-managed", Scope.NSG: "hc1-nsg", Scope.VNET: "hc1-network", Scope.DNS: "dns-local"}
        return (f"/subscriptions/{self._subscription_id}/resourceGroups/{groups[scope]}" for scope in grant.scopes)


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _shown(seconds: int) -> str:
    """As the Azure CLI prints a date."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
