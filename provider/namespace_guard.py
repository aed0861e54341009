"""What distinguishes and protects a stack: the id of its objects in Azure, and the guard of a namespace.

The engine deletes the guard before everything that it depends on, in `destroy` as well, which never runs the program.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from identity.aks.api_server import ApiServer
from identity.aks.azure_rbac import AksCluster
from identity.aks.control_planes import control_planes, refusal, unreadable
from identity.aks.kubeconfig import Kubeconfig
from identity.azure.errors import AccessError
from identity.plugin_schema import NamespaceGuardInputs, StackOwnerInputs, StackOwnerOutputs
from plugin import PluginError
from provider.resource import TypedResource


class NamespaceGuardResource(TypedResource[NamespaceGuardInputs[str], Mapping[str, Any]]):
    """Another namespace is another guard."""

    inputs = NamespaceGuardInputs
    replacing = frozenset({"namespace"})

    def make(self, urn: str, inputs: NamespaceGuardInputs[str]) -> tuple[str, Mapping[str, Any]]:
        """Only record the inputs."""
        return inputs["namespace"], {}

    def remove(self, urn: str, id: str, inputs: NamespaceGuardInputs[str], outputs: Mapping[str, Any]) -> None:
        """Raise `PluginError` while a HostedControlPlane is in the namespace, or if that cannot be checked."""
        namespace, stack = inputs["namespace"], urn.removeprefix("urn:pulumi:").partition("::")[0]
        if inputs["handedOver"]:
            return
        try:
            kubeconfig = Kubeconfig.parse(inputs["kubeconfig"], "the kubeconfig of the stack")
            with ApiServer(kubeconfig, AksCluster(inputs["clusterId"]), context=inputs.get("context")) as server:
                hosted = control_planes(server, [namespace])
        except AccessError as error:
            raise PluginError(
                f"{unreadable([namespace], error)}. If the management cluster itself is gone, take the guard out of "
                f"the state: `.venv/bin/idstack pulumi --stack {stack} -- state delete '{urn}'`"
            ) from None
        if hosted:
            raise PluginError(refusal(hosted, stack))


class StackOwnerResource(TypedResource[StackOwnerInputs, StackOwnerOutputs[str]]):
    """The id is generated once and stays as long as the state."""

    inputs = StackOwnerInputs
    outputs = StackOwnerOutputs

    def make(self, urn: str, inputs: StackOwnerInputs) -> tuple[str, StackOwnerOutputs[str]]:
        """Generate the id."""
        owner_id = str(uuid.uuid4())
        return owner_id, {"ownerId": owner_id}
