"""The identity part of a HostedCluster's specification, as the stack writes it and `idstack export` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.unit import cases

SUBSCRIPTION: Final = "11111111-2222-4333-8444-555555555555"
TENANT: Final = "99999999-8888-4777-8666-555555555555"
GROUPS: Final = f"/subscriptions/{SUBSCRIPTION}/resourceGroups"
VNET: Final = f"{GROUPS}/hc1-network/providers/Microsoft.Network/virtualNetworks/hc1-vnet"
SUBNET: Final = f"{VNET}/subnets/default"
SECURITY_GROUP: Final = f"{GROUPS}/hc1-nsg/providers/Microsoft.Network/networkSecurityGroups/hc1-nsg"


def specification(
    *,
    control_plane: Mapping[str, Mapping[str, str]],
    data_plane: Mapping[str, str],
    kms: Mapping[str, str],
    name: str = "hc1",
    cloud: str = "AzurePublicCloud",
) -> dict[str, Any]:
    """Everything where the API wants it; the identities are given by API field."""
    found: dict[str, Any] = cases.read(
        Path(__file__).with_name("specification.yaml"), {**globals(), "NAME": name, "CLOUD": cloud}
    )
    identities = found["platform"]["azure"]["azureAuthenticationConfig"]["managedIdentities"]
    identities["controlPlane"] |= control_plane
    identities["dataPlane"] = dict(data_plane)
    found["secretEncryption"]["kms"]["azure"]["kms"] = dict(kms)
    return found
