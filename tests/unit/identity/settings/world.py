"""A configuration with nothing wrong, ways to change it, and the report it then gets."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from identity.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID, LocalEnvironment
from identity.settings import ConfigurationError, Settings, load_settings
from tests.unit import cases
from tests.unit.golden_report import reviewed

TENANT: Final = "11111111-1111-4111-8111-111111111111"
SUBSCRIPTION: Final = "22222222-2222-4222-8222-222222222222"
OTHER: Final = "33333333-3333-4333-8333-333333333333"
ZEROS: Final = "00000000-0000-0000-0000-000000000000"
GROUPS: Final = f"/subscriptions/{SUBSCRIPTION}/resourceGroups"
GROUPS_ELSEWHERE: Final = GROUPS.replace(SUBSCRIPTION, OTHER)
NETWORK: Final = f"{GROUPS}/net/providers/Microsoft.Network"
VNET: Final = f"{NETWORK}/virtualNetworks/vnet-1"
MANAGED: Final = f"{GROUPS}/hc1-managed/providers/Microsoft.Network"
DNS: Final = f"{GROUPS}/dns/providers/Microsoft.Network"
MANAGED_IDENTITY: Final = f"{GROUPS}/identity/providers/Microsoft.ManagedIdentity/userAssignedIdentities/ciro"
KEY_VERSION: Final = "0123456789abcdef0123456789abcdef"

ABSENT: Final = cases.ABSENT

LOCAL: Final = LocalEnvironment(
    authority_host="https://localhost:4001/",
    arm_endpoint="https://localhost:4002",
    graph_endpoint="https://localhost:4003",
    key_vault_endpoint="https://localhost:4004",
    blob_endpoint="https://localhost:4006",
    imds_endpoint="http://localhost:4005",
    proxy_endpoint="http://localhost:4005",
    control_endpoint="http://localhost:4007",
    ca_file="/state/ca.pem",
    cluster="builtin",
    kubernetes_endpoint="https://localhost:5006",
    kubeconfig="/state/run/kubeconfig",
    state_dir="/state",
    mounts_dir="/state/run/mounts",
    tenant_id=LOCAL_TENANT_ID,
    subscription_id=LOCAL_SUBSCRIPTION_ID,
    deployer_client_id=OTHER,
    deployer_certificate="/state/run/deployer.pem",
)
# The keys of a stack on the local cloud.
LOCAL_CLOUD_KEYS: Final = {"cloud": "local", "tenantId": LOCAL_TENANT_ID, "subscriptionId": LOCAL_SUBSCRIPTION_ID}


def hosted_cluster(name: str = "hc1", **changes: Any) -> dict[str, Any]:
    """A hosted cluster of the configuration; a change to ABSENT removes a key."""
    whole = {
        "name": name,
        "issuerURL": f"https://{name}.blob.core.windows.net/{name}",
        "resourceGroup": f"{name}-managed",
        "vnetID": VNET,
        "subnetID": f"{VNET}/subnets/default",
        "securityGroupID": f"{NETWORK}/networkSecurityGroups/nsg-1",
        "dnsZoneResourceGroup": "dns",
        "kms": {"activeKey": f"https://kv-etcd.vault.azure.net/keys/etcd/{KEY_VERSION}"},
    } | changes
    return {key: value for key, value in whole.items() if value is not ABSENT}


def domains(name: str = "hc1", **changes: Any) -> dict[str, Any]:
    """The domains and zones of a hosted cluster, to add to it."""
    dns = {
        "baseDomain": "apps.example.com",
        "publicZoneID": f"{DNS}/dnszones/apps.example.com",
        "privateZoneID": f"{MANAGED}/privateDnsZones/{name}.apps.example.com",
    }
    return {"dns": dns | changes, "externalDnsDomain": "control-planes.example.com"}


def creation(**changes: Any) -> dict[str, Any]:
    """A management cluster that the stack makes."""
    create = {"nodePool": {"vmSize": "Standard_D4s_v5"}, "azureRBAC": True, **changes}
    return {"resourceGroup": "aks", "name": "mgmt", "create": create}


def configuration(**changes: Any) -> dict[str, Any]:
    """The whole configuration as a stack file holds it. A change's name is a path with `__` for each step."""
    whole: dict[str, Any] = {
        "tenantId": TENANT,
        "subscriptionId": SUBSCRIPTION,
        "location": "eastus",
        "resourceGroup": "identity",
        "vault": {"name": "kv-identity", "defaultAction": "Allow"},
        "managementCluster": {"resourceGroup": "aks", "name": "mgmt", "kubeconfig": "mgmt.kubeconfig"},
        "probe": {"image": "idstack.azurecr.io/probe:1"},
        "hostedClusters": [hosted_cluster()],
    }
    for path, value in changes.items():
        whole = with_change(whole, path, value)
    return whole


def with_change(whole: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """A copy with another value at `path`; steps that are numbers count in lists, missing mappings are made."""
    changed = copy.deepcopy(whole)
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("__"))
    holder: Any = changed
    for step in steps:
        holder = holder[step] if isinstance(step, int) else holder.setdefault(step, {})
    if value is ABSENT:
        holder.pop(last, None)
    else:
        holder[last] = value
    return changed


def as_pulumi_passes_it(config: Mapping[str, Any]) -> dict[str, str]:
    """Strings as they are, everything else as JSON."""
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}


def load(config: Mapping[str, Any], *, secret_keys: Collection[str] = (), **options: Any) -> Settings:
    """Load a configuration that holds plain values."""
    return load_settings(as_pulumi_passes_it(config), secret_keys=secret_keys, **{"local": None, **options})


def refusals(config: Mapping[str, Any], **options: Any) -> list[tuple[str, str]]:
    """Key path and rule of each problem, in order; none if the configuration is accepted.

    The message of each is the one in the golden report.
    """
    try:
        load(config, **options)
    except ConfigurationError as error:
        return reviewed(error.problems)
    return []


def places(config: Mapping[str, Any]) -> list[str]:
    """The key path of each problem, in order."""
    return [place for place, _ in refusals(config)]


def report(config: Mapping[str, Any], *, secret_keys: Collection[str] = ()) -> str:
    """All of the report."""
    with pytest.raises(ConfigurationError) as refused:
        load(config, secret_keys=secret_keys)
    return str(refused.value)


def read(file: str) -> Any:
    """A file of `cases/`, with the constants of this module in it."""
    return cases.read(Path(__file__).parent / "cases" / file, globals())


def steps(path: str) -> str:
    """A path in `cases/` as `configuration` takes it: `.kms.activeKey` is `hostedClusters__0__kms__activeKey`."""
    return f"{'hostedClusters__0' if path.startswith('.') else ''}{path}".replace(".", "__")


def path_of(path: str) -> str:
    """`a__0__b` as the report writes it: `a[0].b`."""
    head, *steps = path.split("__")
    return head + "".join(f"[{step}]" if step.isdigit() else f".{step}" for step in steps)
