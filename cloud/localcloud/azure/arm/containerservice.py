"""Microsoft.ContainerService: the management cluster, seeded or created by a stack.

`addonProfiles.azureKeyvaultSecretsProvider.identity` in its answer is the key-vault-user of a stack on AKS. Every
cluster here is the one Kubernetes API of this machine, which serves the add-on's kinds from the start and keeps its
objects when a cluster is deleted. Sources: the provider's REST reference; messages as users report them.

Left out: agent pools as resources of their own, PATCH, upgrades, stopping; a cluster is there at once.
"""

from __future__ import annotations

import base64
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.arm.managed_cluster import (
    ADD_ON,
    PROPERTIES,
    check_name,
    checked_properties,
    filled_in,
    runs_add_on,
)
from localcloud.azure.arm.node_group import NodeGroup
from localcloud.azure.arm.resource_type import TRACKED, Call, ResourceType, WrittenType, enumerated
from localcloud.azure.resource_store import public
from localcloud.azure.shared.http import ServiceError
from localcloud.azure.shared.understood import ANY, Understood
from localcloud.core.arm_ids import in_lower_case
from localcloud.core.clouds import AKS_CLIENT_APP_ID, AKS_SERVER_APP_ID
from localcloud.core.cluster import ADMINISTRATOR, token
from localcloud.core.kubernetes_endpoint import Endpoint
from localcloud.core.store import Document
from localcloud.core.yaml_text import dump

_USER: Final = "listclusterusercredential"
_ADMIN: Final = "listclusteradmincredential"
_INSTALL_HINT: Final = "\nkubelogin is not installed which is required to connect to AAD enabled cluster.\n"


class ManagedClusters(WrittenType):
    """AKS clusters, and their kubeconfigs: for users, who sign in at Entra ID, and for administrators, who do not."""

    name = "Microsoft.ContainerService/managedClusters"
    reads = MappingProxyType(
        {
            "PUT": Understood.of(
                body={**TRACKED, "sku": None, "kind": None, "identity": {ANY: None}, "properties": PROPERTIES}
            ),
            f"POST {_USER}": Understood.of("format server-fqdn"),
            f"POST {_ADMIN}": Understood.of("server-fqdn"),
        }
    )

    def present(self, call: Call, resource: Document) -> dict[str, Any]:
        """The cluster, its id and its type in AKS's own letter case, which is not that of its URL."""
        spelt = {"id": in_lower_case(resource["id"]), "type": "Microsoft.ContainerService/ManagedClusters"}
        return {**public(resource), **spelt}

    async def put(self, call: Call) -> Response:
        resource = self.envelope(call, tracked=True)
        check_name(call.path.name)
        current = call.current
        before = current["properties"] if current else {}
        properties = checked_properties(call.properties, before, call.path.name)
        with call.cloud.store.transaction():
            cluster = {**resource, **_beside(call, current, resource["id"])}
            cluster["properties"] = _provisioned(call, cluster, properties)
            call.resources.put(cluster)
        return JSONResponse(self.present(call, self.existing(call)), status_code=200 if current else 201)

    def before_deletion(self, call: Call, resource: Document) -> None:
        _nodes(call, resource["id"], resource["properties"]["nodeResourceGroup"]).remove()
        principal = (resource.get("identity") or {}).get("principalId")
        if principal is not None:
            call.cloud.directory.delete_service_principal(principal)

    async def action(self, call: Call) -> Response:
        cluster = self.existing(call)
        match str(call.path.verb).lower():
            case verb if verb == _USER:
                return _credential("clusterUser", _for_users(call, cluster))
            case verb if verb == _ADMIN:
                return _credential("clusterAdmin", _for_administrators(call, cluster))
        raise errors.not_emulated(f"POST {call.path.verb} of {self.name}")


def _beside(call: Call, current: Document | None, cluster_id: str) -> dict[str, Any]:
    """The members other than `properties`: the SKU, and the cluster's own identity with a principal."""
    known: dict[str, Any] = {
        name: current[name] for name in ("sku", "kind", "identity", "seeded") if current and name in current
    }
    written = {name: call.body[name] for name in ("sku", "kind", "identity") if call.body.get(name) is not None}
    beside: dict[str, Any] = {"sku": {"name": "Base", "tier": "Free"}, "kind": "Base", **known, **written}
    if enumerated((beside.get("identity") or {}).get("type"), ("SystemAssigned",)):
        principal = known.get("identity", {}).get("principalId") or (
            call.cloud.directory.create_managed_identity(cluster_id, call.path.name).object_id
        )
        beside["identity"] = {"type": "SystemAssigned", "principalId": principal, "tenantId": call.cloud.tenant_id}
    return beside


def _provisioned(call: Call, cluster: Document, properties: dict[str, Any]) -> dict[str, Any]:
    """The properties of a cluster with its nodes, and with the identities that AKS creates for them."""
    name, location = call.path.name, cluster["location"]
    group = properties.get("nodeResourceGroup") or f"MC_{call.path.resource_group}_{name}_{location}"[:80].rstrip(".")
    filled = filled_in({**properties, "nodeResourceGroup": group}, location, call.cloud.tenant_id)
    nodes = _nodes(call, cluster["id"], group)
    nodes.create(location, cluster["tags"])
    kubelet = nodes.identity(f"{name}-agentpool", location)
    filled["identityProfile"] = {"kubeletidentity": kubelet}
    attached = [kubelet]
    add_on = f"azurekeyvaultsecretsprovider-{name}"
    profiles = {key: {**profile} for key, profile in (properties.get("addonProfiles") or {}).items()}
    if runs_add_on(properties):
        profiles[ADD_ON]["identity"] = nodes.identity(add_on, location)
        attached.append(profiles[ADD_ON]["identity"])
    else:
        nodes.remove_identity(add_on)
        profiles.get(ADD_ON, {}).pop("identity", None)
    if profiles:
        filled["addonProfiles"] = profiles
    nodes.attach(filled["agentPoolProfiles"], location, attached)
    return filled


def _nodes(call: Call, cluster_id: str, group: str) -> NodeGroup:
    return NodeGroup(call.cloud, call.resources, cluster_id, group)


def _for_users(call: Call, cluster: Document) -> dict[str, Any]:
    properties = cluster["properties"]
    if not (properties.get("aadProfile") or {}).get("managed"):
        return _for_administrators(call, cluster)
    form = call.query.get("format", "exec").lower()
    if form not in {"exec", "azure"}:
        raise errors.bad_request(f"The value of parameter format is invalid: {form}. It must be azure or exec.")
    tenant = properties["aadProfile"].get("tenantID") or call.cloud.tenant_id
    return _kubeconfig(call, cluster, "clusterUser", _by_exec(tenant) if form == "exec" else _by_provider(tenant))


def _for_administrators(call: Call, cluster: Document) -> dict[str, Any]:
    if cluster["properties"].get("disableLocalAccounts"):
        raise ServiceError(
            400,
            "BadRequest",
            "Getting static credential is not allowed because this cluster is set to disable local accounts.",
        )
    endpoint = Endpoint.load(call.cloud.store)
    administrator = {"token": token(call.cloud.store, endpoint.cluster, ADMINISTRATOR)}
    return _kubeconfig(call, cluster, "clusterAdmin", administrator)


def _by_exec(tenant: str) -> dict[str, Any]:
    arguments = ["get-token", "--environment", "AzurePublicCloud", "--server-id", AKS_SERVER_APP_ID]
    arguments += ["--client-id", AKS_CLIENT_APP_ID, "--tenant-id", tenant, "--login", "devicecode"]
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "args": arguments,
            "command": "kubelogin",
            "env": None,
            "installHint": _INSTALL_HINT,
            "provideClusterInfo": False,
        }
    }


def _by_provider(tenant: str) -> dict[str, Any]:
    config = {
        "apiserver-id": AKS_SERVER_APP_ID,
        "client-id": AKS_CLIENT_APP_ID,
        "config-mode": "1",
        "environment": "AzurePublicCloud",
        "tenant-id": tenant,
    }
    return {"auth-provider": {"name": "azure", "config": config}}


def _kubeconfig(call: Call, cluster: Document, kind: str, user: dict[str, Any]) -> dict[str, Any]:
    endpoint, name = Endpoint.load(call.cloud.store), cluster["name"]
    context = f"{name}-admin" if kind == "clusterAdmin" else name
    who = f"{kind}_{call.path.resource_group}_{name}"
    server = {"certificate-authority-data": endpoint.ca, "server": _server(call, cluster, endpoint)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": server}],
        "contexts": [{"name": context, "context": {"cluster": name, "user": who}}],
        "current-context": context,
        "preferences": {},
        "users": [{"name": who, "user": user}],
    }


def _server(call: Call, cluster: Document, endpoint: Endpoint) -> str:
    """The API server's address; a private cluster's private name, which does not resolve here, or its public one."""
    properties = cluster["properties"]
    if "privateFQDN" not in properties:
        return endpoint.server
    if call.query.get("server-fqdn") != "public":
        return f"https://{properties['privateFQDN']}:443"
    if "fqdn" not in properties:
        raise errors.bad_request(f"The private cluster '{cluster['name']}' has no public FQDN.")
    return endpoint.server


def _credential(name: str, kubeconfig: dict[str, Any]) -> JSONResponse:
    text = dump(kubeconfig)
    return JSONResponse({"kubeconfigs": [{"name": name, "value": base64.b64encode(text.encode()).decode()}]})


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return (ManagedClusters(),)
