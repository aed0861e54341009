"""`pulumi import` of every type that the local stack's plugins have: what it reads is what a program has to write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kubernetes import config
from kubernetes.dynamic import DynamicClient

from identity.credentials import rfc3339
from localcloud.testing.hosted_clusters import hosted_cluster
from localcloud.testing.kubernetes import KINDS
from localcloud.testing.plugins import AZURE_NATIVE as IN_ARM
from localcloud.testing.plugins import AZUREAD as IN_ENTRA
from provider.__main__ import RESOURCES as OWN
from tests.engine import infrastructure_by_hand
from tests.engine.out_of_band import OutOfBand
from tests.harness import PROJECT, LocalStack

pytestmark = pytest.mark.slow

# What only controllers write.
_NOT_DECLARED = {"Event", "Pod", "SecretProviderClassPodStatus"}
_OBJECTS = {
    f"kubernetes:{kind.group or 'core'}/{kind.version}:{kind.kind}" for kind in KINDS if kind.kind not in _NOT_DECLARED
}
_CREDENTIAL_SECRET = "idstack:index:CredentialSecret"
# `tests/unit/provider/test_vault_signing_key.py` imports the second.
_IN_A_VAULT = (_CREDENTIAL_SECRET, "idstack:index:EncryptionKey", "idstack:index:SigningKey")
# These are in Azure or in the cluster, but part of what they are is not.
_NOT_IMPORTED = {
    "idstack:index:HsmRoleAssignment": "it needs no import",
    "idstack:index:IssuerDocuments": "only its stack knows since when a key is published",
    "idstack:index:EncryptionKeySecret": "only its stack knows which key the Secret holds",
    "idstack:index:SigningKeySecret": "only its stack knows which key the Secret holds",
}
_IMPORTED = sorted({*IN_ARM, *IN_ENTRA, *_OBJECTS, _CREDENTIAL_SECRET})

# What the service fills in of a cluster, beside the names and the node resource group that are given.
_FILLED_IN = {
    *("enableRBAC", "kind", "kubernetesVersion", "networkProfile", "sku", "supportPlan"),
    *("aadProfile.enableAzureRBAC", "aadProfile.tenantID", "identityProfile"),
    *(f"agentPoolProfiles[0].{name}" for name in ("osType", "powerState", "type")),
}

# What a preview shows right after the import, where it shows anything. A value that a service does not give away can
# not be imported; an empty list and none look the same in an answer; of Kubernetes' defaults nobody can tell whether
# they were asked for.
_SHOWN: Mapping[str, tuple[str, set[str]]] = {
    "azure-native:network:LoadBalancer": (
        "update",
        {
            "sku.tier",
            *(f"{part}[0].id" for part in ("backendAddressPools", "frontendIPConfigurations", "outboundRules")),
        },
    ),
    "azure-native:network:PublicIPAddress": (
        "replace",
        {"idleTimeoutInMinutes", "ipAddress", "publicIPAddressVersion", "sku.tier"},
    ),
    "azure-native:network:Subnet": (
        "update",
        {"name", "privateEndpointNetworkPolicies", "privateLinkServiceNetworkPolicies", "type"},
    ),
    "azure-native:network:VirtualNetwork": ("update", {"enableDdosProtection", "subnets"}),
    "azure-native:storage:BlobContainer": ("update", {"defaultEncryptionScope", "denyEncryptionScopeOverride"}),
    "azure-native:storage:StorageAccount": ("update", {"enableHttpsTrafficOnly", "encryption", "networkRuleSet"}),
    "azure-native:containerservice:ManagedCluster": ("update", _FILLED_IN),
    "azure-native:keyvault:Secret": ("update", {"properties.value", "tags.idstack-owner"}),
    # Of the document ARM shows what is in attributes and tags. The owner id of the one who wrote it is taken by nobody.
    _CREDENTIAL_SECRET: ("update", {"authorityHost", "clientId", "objectEncoding", "objectId", "ownerId"}),
    "azure-native:keyvault:Vault": (
        "update",
        {"properties.networkAcls.ipRules", "properties.networkAcls.virtualNetworkRules"},
    ),
    "azuread:index/applicationCertificate:ApplicationCertificate": ("replace", {"value"}),
    "kubernetes:apps/v1:Deployment": ("update", {"spec.strategy", "spec.template.spec.restartPolicy"}),
    "kubernetes:apps/v1:ReplicaSet": ("update", {"spec.template.spec.restartPolicy"}),
    "kubernetes:core/v1:PersistentVolumeClaim": ("update", {"spec.volumeMode"}),
    "kubernetes:core/v1:Namespace": ("update", {"metadata.labels", "spec"}),
    "kubernetes:hypershift.openshift.io/v1beta1:HostedCluster": (
        "update",
        {
            *("spec.capabilities", "spec.controllerAvailabilityPolicy", "spec.infrastructureAvailabilityPolicy"),
            *("spec.etcd", "spec.networking", "spec.olmCatalogPlacement", "spec.platform.azure.cloud"),
        },
    ),
}

# Kinds that the stack does not make, as somebody else may have made them.
_ROLE = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
_BINDING = {
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "by-hand"},
    "subjects": [{"kind": "ServiceAccount", "name": "by-hand", "namespace": "default"}],
}
_HOSTED_CLUSTER = {"spec": hosted_cluster()["spec"]}
_BUDGET = {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "by-hand"}}}}
_POD = {"metadata": {"labels": {"app": "by-hand"}}, "spec": {"containers": [{"name": "idle", "image": "idle"}]}}
_REPLICA_SET = {"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "by-hand"}}, "template": _POD}}
_CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
_BY_HAND: Mapping[str, Mapping[str, Any]] = {
    "kubernetes:apps/v1:ReplicaSet": _REPLICA_SET,
    "kubernetes:core/v1:PersistentVolumeClaim": _CLAIM,
    "kubernetes:core/v1:ServiceAccount": {},
    "kubernetes:networking.k8s.io/v1:NetworkPolicy": {"spec": {"podSelector": {}, "policyTypes": ["Egress"]}},
    "kubernetes:policy/v1:PodDisruptionBudget": _BUDGET,
    "kubernetes:rbac.authorization.k8s.io/v1:Role": _ROLE,
    "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding": _BINDING,
    "kubernetes:hypershift.openshift.io/v1beta1:HostedCluster": _HOSTED_CLUSTER,
}

_CLUSTER: Mapping[str, Any] = {
    "location": "eastus",
    "dnsPrefix": "by-hand",
    "nodeResourceGroup": "by-hand-nodes",
    "agentPoolProfiles": [{"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1}],
    "aadProfile": {"managed": True},
    "disableLocalAccounts": True,
    "addonProfiles": {"azureKeyvaultSecretsProvider": {"enabled": True, "config": {"rotationPollInterval": "2m"}}},
    "oidcIssuerProfile": {"enabled": True},
    "identity": {"type": "SystemAssigned"},
}

_PROGRAM = """\
import json
from pathlib import Path
import pulumi
spec = json.loads(Path("spec.json").read_text())
providers = {name: pulumi.ProviderResource(name, name, inputs) for name, inputs in spec["providers"].items()}
for each in spec["resources"]:
    options = pulumi.ResourceOptions(provider=providers.get(each["type"].partition(":")[0]))
    pulumi.CustomResource(each["type"], each["name"], each["inputs"], options)
"""


@dataclass(frozen=True)
class Adopter:
    """A stack of its own on the same local cloud, and what its preview printed once everything was imported."""

    stack: LocalStack
    project: Path
    steps: Mapping[str, list[Mapping[str, Any]]]  # by type

    def pulumi(self, *arguments: str, check: bool = True) -> str:
        """Run the engine there; what it printed."""
        done = self.stack.run("pulumi", *arguments, "--non-interactive", directory=self.project, check=check)
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def by_hand(small: LocalStack) -> Iterator[list[dict[str, Any]]]:
    """Objects of the kinds that the stack does not make."""
    with config.new_client_from_config(small.environment.kubeconfig) as api:
        cluster = DynamicClient(api)
        made: list[dict[str, Any]] = []
        for token, content in _BY_HAND.items():
            kind = next(
                resource_kind
                for resource_kind in KINDS
                if token.endswith(f"/{resource_kind.version}:{resource_kind.kind}")
            )
            metadata = {"name": "by-hand", "namespace": "default"}
            body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **content}
            cluster.resources.get(api_version=kind.api_version, kind=kind.kind).create(body=body)
            made.append({"type": token, "name": kind.kind, "id": "default/by-hand", "inputs": body})
        yield made
        for resource in made:
            body = resource["inputs"]
            kinds = cluster.resources.get(api_version=body["apiVersion"], kind=body["kind"])
            kinds.delete(name="by-hand", namespace="default")


@pytest.fixture(scope="module")
def cluster_by_hand(small: LocalStack) -> Iterator[dict[str, Any]]:
    """A managed cluster that somebody has made through ARM."""
    local, beside = small.environment, ("location", "identity")
    group = f"/subscriptions/{local.subscription_id}/resourceGroups/aks-local"
    cluster = f"{group}/providers/Microsoft.ContainerService/managedClusters/by-hand"
    properties = {key: value for key, value in _CLUSTER.items() if key not in beside}
    out_of_band = OutOfBand(small)
    out_of_band.arm("PUT", cluster, "2025-09-01", {**{key: _CLUSTER[key] for key in beside}, "properties": properties})
    names = {"resourceGroupName": "aks-local", "resourceName": "by-hand"}
    token = "azure-native:containerservice:ManagedCluster"
    yield {"type": token, "name": "by-hand", "id": cluster, "inputs": {**names, **_CLUSTER}}
    out_of_band.arm("DELETE", cluster, "2025-09-01")


@pytest.fixture(scope="module")
def network_by_hand(small: LocalStack) -> Iterator[list[dict[str, Any]]]:
    """The infrastructure of a hosted cluster that somebody has made through ARM."""
    somebody = OutOfBand(small)
    yield infrastructure_by_hand.make(somebody)
    infrastructure_by_hand.remove(somebody)


@pytest.fixture(scope="module")
def storage_by_hand(small: LocalStack) -> Iterator[list[dict[str, Any]]]:
    """A storage account with a public container, made through ARM."""
    local = small.environment
    group = f"/subscriptions/{local.subscription_id}/resourceGroups/identity-local"
    account = f"{group}/providers/Microsoft.Storage/storageAccounts/byhand"
    container = f"{account}/blobServices/default/containers/byhand"
    whole: dict[str, Any] = {"location": "eastus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}}
    properties = {"allowBlobPublicAccess": True, "minimumTlsVersion": "TLS1_2", "accessTier": "Hot"}
    own = {**properties, "allowCrossTenantReplication": False}
    out_of_band = OutOfBand(small)
    out_of_band.arm("PUT", account, "2024-01-01", {**whole, "properties": own})
    out_of_band.arm("PUT", container, "2024-01-01", {"properties": {"publicAccess": "Blob"}})
    place = {"resourceGroupName": "identity-local", "accountName": "byhand"}
    made = {
        "StorageAccount": (account, {**place, **whole, **own}),
        "BlobContainer": (container, {**place, "containerName": "byhand", "publicAccess": "Blob"}),
    }
    yield [
        {"type": f"azure-native:storage:{kind}", "name": f"by-hand-{kind}", "id": arm_id, "inputs": inputs}
        for kind, (arm_id, inputs) in made.items()
    ]
    out_of_band.arm("DELETE", account, "2024-01-01")


@pytest.fixture(scope="module")
def adopter(
    small: LocalStack,
    by_hand: list[dict[str, Any]],
    cluster_by_hand: dict[str, Any],
    network_by_hand: list[dict[str, Any]],
    storage_by_hand: list[dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Adopter]:
    """The other stack's program is what made the things: their inputs as the state has them."""
    project = tmp_path_factory.mktemp("adopter")
    exported = json.loads(small.pulumi("stack", "export", "--show-secrets").stdout)["deployment"]["resources"]
    made_by_it = [
        {
            "type": resource["type"],
            "name": resource["urn"].rpartition("::")[2],
            "id": resource["id"],
            "inputs": resource["inputs"],
            "deliveredAt": resource["outputs"].get("deliveredAt"),
        }
        for resource in _plain(exported)
        if resource["type"] in _IMPORTED
    ]
    # A credential that was issued elsewhere has neither an authority's URL nor an object id in the state.
    [secret, *_] = [
        resource
        for resource in made_by_it
        if resource["type"] == _CREDENTIAL_SECRET and "generation" in resource["inputs"]
    ]
    place = f"{secret['inputs']['cloud']}/{secret['inputs']['tenantId']}"
    things = [
        *by_hand,
        cluster_by_hand,
        *network_by_hand,
        *storage_by_hand,
        {**secret, "id": f"{place}{secret['id']}"},
        _as_azure_natives(secret),
        *(resource for resource in made_by_it if resource["type"] != _CREDENTIAL_SECRET),
    ]
    tenant = {"tenantId": small.environment.tenant_id}
    providers = {
        "azure-native": {**tenant, "subscriptionId": small.environment.subscription_id},
        "azuread": tenant,
        "kubernetes": {"kubeconfig": Path(small.environment.kubeconfig).read_text(encoding="utf-8")},
    }
    plugin = {"name": "idstack", "path": str(PROJECT / "provider")}
    about = {"name": "adopter", "runtime": "python", "plugins": {"providers": [plugin]}}
    (project / "Pulumi.yaml").write_text(json.dumps(about), encoding="utf-8")
    (project / "__main__.py").write_text(_PROGRAM, encoding="utf-8")
    made = Adopter(small, project, {})
    made.pulumi("stack", "init", "adopter")
    try:
        _write_spec(project, providers, [])
        made.pulumi("up", "--yes", "--skip-preview")
        (project / "import.json").write_text(json.dumps(_import_file(made, things)), encoding="utf-8")
        made.pulumi("import", "--file", "import.json", "--yes", "--skip-preview", "--generate-code=false")
        _write_spec(project, providers, things)
        plan = json.loads(small.run("pulumi", "preview", "--json", directory=project).stdout)
        steps: dict[str, list[Mapping[str, Any]]] = {}
        for step in plan["steps"]:
            steps.setdefault(step["urn"].split("::")[2], []).append(step)
        yield Adopter(small, project, steps)
    finally:
        made.pulumi("stack", "rm", "adopter", "--yes", "--force")


@pytest.mark.parametrize("token", _IMPORTED)
def test_an_imported_resource_is_what_the_program_says(adopter: Adopter, token: str) -> None:
    operation, paths = _SHOWN.get(token, ("same", set()))

    steps = adopter.steps[token]

    assert {step["op"] for step in steps} == {operation}
    for step in steps:
        assert paths <= set(step["detailedDiff"] or {}), step["detailedDiff"]
        # Those of pods have many defaults.
        if not token.startswith("kubernetes:apps/v1:"):
            assert set(step["detailedDiff"] or {}) == paths


def test_a_refresh_reads_again_what_the_import_has_read(adopter: Adopter) -> None:
    adopter.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes")


def test_what_lives_in_a_state_alone_can_not_be_imported(adopter: Adopter) -> None:
    resources = [
        {"type": token, "name": token.rpartition(":")[2], "id": "x"} for token in OWN if token not in _IN_A_VAULT
    ]
    (adopter.project / "own.json").write_text(json.dumps({"resources": resources}), encoding="utf-8")

    printed = adopter.pulumi(
        "import", "--file", "own.json", "--yes", "--skip-preview", "--generate-code=false", check=False
    )

    for resource in resources:
        reason = _NOT_IMPORTED.get(resource["type"], "it exists in the state of its stack alone")
        assert f"{resource['name']} cannot be imported: {reason}" in printed
    assert "Remove the import and let the next `up` create it" in printed
    assert "Traceback" not in printed


def _as_azure_natives(secret: Mapping[str, Any]) -> dict[str, Any]:
    """The secret as azure-native's resource; ARM shows dates as seconds."""
    inputs, parts = secret["inputs"], secret["id"].split("/")
    group, vault, name = parts[4], parts[8], parts[10]
    not_before, expires = (int(rfc3339.parse(inputs[key]).timestamp()) for key in ("notBefore", "notAfter"))
    own = {
        "thumbprint": inputs["thumbprint"],
        "generation": inputs["generation"],
        "delivered_at": secret["deliveredAt"],
        "renew_after": inputs["renewAfter"],
        "cannot_renew_after": inputs["cannotRenewAfter"],
    }
    return {
        "type": "azure-native:keyvault:Secret",
        "name": "as-azure-native",
        "id": secret["id"],
        "inputs": {
            "resourceGroupName": group,
            "vaultName": vault,
            "secretName": name,
            "properties": {
                "value": "{}",
                "contentType": "application/json",
                "attributes": {"enabled": True, "notBefore": not_before, "expires": expires},
            },
            "tags": {**inputs["tags"], **own},
        },
    }


def _write_spec(project: Path, providers: Mapping[str, Any], resources: list[dict[str, Any]]) -> None:
    (project / "spec.json").write_text(json.dumps({"providers": providers, "resources": resources}), encoding="utf-8")


def _import_file(adopter: Adopter, things: list[dict[str, Any]]) -> dict[str, Any]:
    exported = json.loads(adopter.pulumi("stack", "export"))["deployment"]["resources"]
    providers = {
        resource["urn"].rpartition("::")[2]: resource["urn"] for resource in exported if "providers" in resource["type"]
    }
    resources = [
        {key: thing[key] for key in ("type", "name", "id")}
        # The project's own plugin has no provider but the default one.
        | ({} if thing["type"] in OWN else {"provider": thing["type"].partition(":")[0]})
        for thing in things
    ]
    return {"nameTable": providers, "resources": resources}


def _plain(value: Any) -> Any:
    """An exported value with its secrets in clear (`4dabf...` is the engine's mark of one)."""
    if isinstance(value, dict):
        if "4dabf18193072939515e22adb298388d" in value:
            return json.loads(value["plaintext"])
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value
