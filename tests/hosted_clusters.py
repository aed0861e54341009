"""A valid HostedCluster, and changes of it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

ABSENT: Final = object()
"""A value that removes the field."""

# A template: its one digit tells the UUIDs apart.
UUID: Final = "00000000-0000-4000-8000-00000000000{}"
SUBSCRIPTION: Final = f"/subscriptions/{UUID.format(1)}"
NETWORK: Final = f"{SUBSCRIPTION}/resourceGroups/hc1-network/providers/Microsoft.Network"


def hosted_cluster(name: str = "hc1", **changes: Any) -> dict[str, Any]:
    """A managed HostedCluster with every identity; `changes` are values by dotted path, with `__` for a dot."""
    document: dict[str, Any] = {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "infraID": f"{name}-infra",
            "issuerURL": "https://oidc.example.com/hc1",
            "serviceAccountSigningKey": {"name": "signer"},
            "release": {"image": "quay.io/openshift-release-dev/ocp-release:4.21.0"},
            "pullSecret": {"name": "pull"},
            "services": [
                {"service": service, "servicePublishingStrategy": {"type": "Route"}}
                for service in ("APIServer", "OAuthServer", "Konnectivity", "Ignition")
            ],
            "platform": {"type": "Azure", "azure": _azure()},
            "secretEncryption": {
                "type": "kms",
                "kms": {
                    "provider": "Azure",
                    "azure": {"kms": _identity("kms"), "activeKey": kms_key("kv-etcd")},
                },
            },
        },
    }
    for path, value in changes.items():
        document = changed(document, path.replace("__", "."), value)
    return document


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with another value at a dotted path (`ABSENT`: without it); numbers are indexes of a list."""
    copy = deepcopy(document)
    *outer, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    place: Any = copy
    for step in outer:
        place = place[step] if isinstance(step, int) else place.setdefault(step, {})
    if value is ABSENT:
        del place[last]
    else:
        place[last] = deepcopy(value)
    return copy


def _identity(secret: str) -> dict[str, str]:
    return {"clientID": UUID.format(3), "credentialsSecretName": f"{secret}-hc1-json", "objectEncoding": "utf-8"}


def kms_key(vault: str) -> dict[str, str]:
    """`activeKey` or `backupKey` at this vault."""
    return {"keyVaultName": vault, "keyName": "hc1-etcd", "keyVersion": "0123456789abcdef0123456789abcdef"}


def _azure() -> dict[str, Any]:
    names = ("cloudProvider", "nodePoolManagement", "controlPlaneOperator", "imageRegistry", "ingress", "network")
    return {
        "location": "eastus",
        "resourceGroup": "hc1-managed",
        "subscriptionID": UUID.format(1),
        "tenantID": UUID.format(2),
        "vnetID": f"{NETWORK}/virtualNetworks/hc1-vnet",
        "subnetID": f"{NETWORK}/virtualNetworks/hc1-vnet/subnets/default",
        "securityGroupID": f"{NETWORK}/networkSecurityGroups/hc1-nsg",
        "azureAuthenticationConfig": {
            "azureAuthenticationConfigType": "ManagedIdentities",
            "managedIdentities": {
                "controlPlane": {
                    "managedIdentitiesKeyVault": {"name": "kv-idstack", "tenantID": UUID.format(2)},
                    **{name: _identity(name.lower()) for name in (*names, "disk", "file")},
                },
                "dataPlane": {
                    name: UUID.format(4) for name in ("diskMSIClientID", "fileMSIClientID", "imageRegistryMSIClientID")
                },
            },
        },
    }
