"""What the scripts make for one control-plane identity and one data-plane identity, as the modules see it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from identity.catalogue import CONTROL_PLANE, DATA_PLANE
from identity.naming import ArmId, managed_identity_id, parse_arm_id
from localcloud.testing.arm import GROUP, SUBSCRIPTION, VAULT
from ops.adoption.entry import FoundApplication, FoundIdentity, FoundResources
from ops.adoption.files import ControlPlaneFile, ScriptIdentity

ROW, MANAGED_ROW = CONTROL_PLANE[0], DATA_PLANE[0]
CLIENT_ID = "6f2c1e7a-0000-4000-8000-00000000aaaa"
PRINCIPAL_ID = "6f2c1e7a-0000-4000-8000-00000000bbbb"
APPLICATION_ID = "6f2c1e7a-0000-4000-8000-00000000cccc"
MANAGED_PRINCIPAL_ID = "6f2c1e7a-0000-4000-8000-00000000dddd"
SECRET = f"{ROW.secret_stem}-p-json"
ISSUER = "https://oidc.example.com/p"
VAULT_OBJECT: dict[str, Any] = {
    "id": VAULT,
    "name": "kv-idstack-local",
    "location": "eastus",
    "properties": {
        "enableRbacAuthorization": True,
        "softDeleteRetentionInDays": 30,
        "publicNetworkAccess": "Enabled",
        "networkAcls": {"bypass": "AzureServices", "defaultAction": "Deny", "ipRules": [{"value": "203.0.113.0/24"}]},
    },
}
NAMED = ControlPlaneFile(
    identities={ROW.field: ScriptIdentity(CLIENT_ID, SECRET, "utf-8", f"{ROW.secret_stem}-p")},
    others={"other": ScriptIdentity(CLIENT_ID, "other-p-json", "utf-8")},
    vault="kv-idstack-local",
)


def identity_id(name: str, group: str = GROUP.rpartition("/")[2]) -> ArmId:
    """The id of a managed identity."""
    return parse_arm_id(managed_identity_id(SUBSCRIPTION.rpartition("/")[2], group, name))


IDENTITY = FoundIdentity(
    id=identity_id("registry-MI-p"),
    location="westeurope",
    principal_id=MANAGED_PRINCIPAL_ID,
    federated={(ISSUER, MANAGED_ROW.subjects[0].subject): "registry-MI-p-fed-id"},
)
EXISTING = FoundResources(
    named=NAMED,
    subscription=SUBSCRIPTION.rpartition("/")[2],
    vault=VAULT_OBJECT,
    applications={ROW.field: FoundApplication(APPLICATION_ID, f"{ROW.secret_stem}-p", PRINCIPAL_ID)},
    secrets={ROW.field: ["PKCS#12"]},
    managed={MANAGED_ROW.field: IDENTITY},
)


def with_identity(**changes: Any) -> FoundResources:
    """The same with another managed identity."""
    return replace(EXISTING, managed={MANAGED_ROW.field: replace(IDENTITY, **changes)})


def with_vault(**properties: Any) -> FoundResources:
    """The same with other properties of the vault."""
    return replace(EXISTING, vault={**VAULT_OBJECT, "properties": {**VAULT_OBJECT["properties"], **properties}})
