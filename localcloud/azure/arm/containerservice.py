"""Microsoft.ContainerService: the management cluster.

`addonProfiles.azureKeyvaultSecretsProvider.identity` in its answer is the key-vault-user of a stack on AKS. Every
cluster here is the one Kubernetes API of this machine. Sources: the provider's REST reference; texts as users report.
"""

from __future__ import annotations

import base64
from typing import Any, Final

import yaml
from starlette.responses import JSONResponse, Response

from identity.access.login import AKS_CLIENT_APP_ID, AKS_SERVER_APP_ID
from localcloud.azure.arm import errors
from localcloud.azure.arm.resource_type import Call, ResourceType, StoredType
from localcloud.azure.http import ServiceError
from localcloud.cluster import ADMINISTRATOR, token
from localcloud.kubernetes.endpoint import Endpoint
from localcloud.state import Document

_USER: Final = "listclusterusercredential"
_ADMIN: Final = "listclusteradmincredential"
_INSTALL_HINT: Final = "\nkubelogin is not installed which is required to connect to AAD enabled cluster.\n"


class ManagedClusters(StoredType):
    """AKS clusters, and their kubeconfigs: one that makes a person sign in, and one for administrators past Entra."""

    name = "Microsoft.ContainerService/managedClusters"

    async def action(self, call: Call) -> Response:
        cluster = self.existing(call)
        match str(call.path.verb).lower():
            case verb if verb == _USER:
                return _credential("clusterUser", _for_users(call, cluster))
            case verb if verb == _ADMIN:
                return _credential("clusterAdmin", _for_administrators(call, cluster))
        raise errors.not_emulated(f"POST {call.path.verb} of {self.name}")


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
    server = {"certificate-authority-data": endpoint.ca, "server": endpoint.server}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": server}],
        "contexts": [{"name": context, "context": {"cluster": name, "user": who}}],
        "current-context": context,
        "preferences": {},
        "users": [{"name": who, "user": user}],
    }


def _credential(name: str, kubeconfig: dict[str, Any]) -> JSONResponse:
    text = yaml.safe_dump(kubeconfig, sort_keys=False)
    return JSONResponse({"kubeconfigs": [{"name": name, "value": base64.b64encode(text.encode()).decode()}]})


def types() -> tuple[ResourceType, ...]:
    """The namespace's resource types."""
    return (ManagedClusters(),)
