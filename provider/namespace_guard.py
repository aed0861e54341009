"""`NamespaceGuardResource`: refuses its deletion while the namespace holds a control plane of HyperShift.

The engine deletes it before everything that it depends on, in `destroy` as well, which never runs the program.
"""

from __future__ import annotations

from typing import Final

from identity.aks.api_server import ApiServer
from identity.aks.azure_rbac import AksCluster
from identity.aks.control_planes import control_planes, refusal, unreadable
from identity.aks.kubeconfig import Kubeconfig
from identity.azure.errors import AccessError
from plugin import Checked, Created, Diff, PluginError, PropertyChange, Props, diff_properties, unwrap
from provider import schema
from provider.inputs import Inputs
from provider.state_only import StateOnly

_STRINGS: Final = ("clusterId", "kubeconfig", "namespace")
_NAMESPACE: Final = "namespace"
_HANDED_OVER: Final = "handedOver"


class NamespaceGuardResource(StateOnly):
    """Inputs: `clusterId` (ARM id), `kubeconfig` (secret), `context` (of the kubeconfig; null is its current one),
    `namespace`, and `handedOver`: whether the namespace is HyperShift's now, and the guard may go.

    There are no other outputs.
    """

    secrets = ("kubeconfig",)

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Validate, and mark the kubeconfig."""
        inputs = Inputs(unwrap(new))
        for name in _STRINGS:
            inputs.string(name)
        inputs.boolean(_HANDED_OVER)
        if old is not None:
            schema.require(old)
        return Checked(schema.marked(self.marked(new)), inputs.failures)

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Another namespace is another guard; everything else changes in place."""
        changes = diff_properties(old_inputs, new_inputs)
        if _NAMESPACE in changes:
            changes[_NAMESPACE] = PropertyChange("update", replace=True)
        return Diff(changes)

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """Keep the inputs."""
        return Created("" if preview else str(unwrap(inputs)[_NAMESPACE]), self.marked(inputs))

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """Keep the new inputs."""
        return self.marked(new_inputs)

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        """Raise `PluginError` while there is a HostedControlPlane in the namespace, or if that cannot be seen."""
        known = unwrap(state)
        namespace, stack = known[_NAMESPACE], urn.removeprefix("urn:pulumi:").partition("::")[0]
        if known[_HANDED_OVER]:
            return
        try:
            kubeconfig = Kubeconfig.parse(known["kubeconfig"], "the kubeconfig of the stack")
            with ApiServer(kubeconfig, AksCluster(known["clusterId"]), context=known.get("context")) as server:
                found = control_planes(server, [namespace])
        except AccessError as error:
            raise PluginError(
                f"{unreadable([namespace], error)}. If the management cluster itself is gone, take the guard out of "
                f"the state: `idstack pulumi --stack {stack} -- state delete '{urn}'`"
            ) from None
        if found:
            raise PluginError(refusal(found, stack))
