"""`ClusterGateResource`: proves that a new management cluster can be used, before anything is put into it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from identity.aks import permissions
from identity.aks.api_server import AccessRequirements, ApiServer
from identity.aks.azure_rbac import AksCluster
from identity.aks.kinds import kind_of
from identity.aks.kubeconfig import Kubeconfig
from identity.azure.errors import AccessError
from identity.credentials import rfc3339
from plugin import (
    UNKNOWN,
    Checked,
    Created,
    Diff,
    PluginError,
    Props,
    diff_properties,
    log_info,
    pause,
    unwrap,
)
from provider import schema
from provider.inputs import Inputs
from provider.state_only import StateOnly

_STRINGS: Final = ("clusterId", "clusterUid", "kubeconfig")
# How long to wait, not for what.
_TIMEOUT: Final = "timeoutSeconds"


class ClusterGateResource(StateOnly):
    """Inputs: `clusterId` (ARM id), `clusterUid` (a re-created cluster has another), `hasAzureRbac` (whether Azure role
    assignments decide there), `kubeconfig` (secret), `kinds` that must be served, each `<group>/<version>/<plural>`,
    and `timeoutSeconds`.

    Outputs also: `openedAt` (RFC 3339).
    """

    secrets = ("kubeconfig",)

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Validate, and mark the kubeconfig."""
        inputs = Inputs(unwrap(new))
        for name in _STRINGS:
            inputs.string(name)
        inputs.strings("kinds")
        inputs.boolean("hasAzureRbac")
        inputs.integer(_TIMEOUT, least=1)
        if old is not None:
            schema.require(old)
        return Checked(schema.marked(self.marked(new)), inputs.failures)

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Every property may change in place."""
        return Diff(diff_properties(old_inputs, new_inputs))

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """Wait for the cluster; in a preview leave `openedAt` unknown."""
        name = urn.rsplit("::", 1)[-1]
        return Created("", self._planned_outputs(inputs)) if preview else Created(name, self._opened(inputs))

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """Wait again if the cluster, the way to it or what it must serve changed."""
        if not diff_properties(old_inputs, new_inputs).keys() - {_TIMEOUT}:
            return self.marked(new_inputs | {"openedAt": old_state["openedAt"]})
        return self._planned_outputs(new_inputs) if preview else self._opened(new_inputs)

    def _planned_outputs(self, inputs: Props) -> Props:
        return self.marked(inputs | {"openedAt": UNKNOWN})

    def _opened(self, inputs: Props) -> Props:
        known = unwrap(inputs)
        wanted = AccessRequirements(permissions.permissions(), tuple(map(kind_of, known["kinds"])))
        aks = AksCluster(known["clusterId"], known["hasAzureRbac"])
        try:
            with ApiServer(Kubeconfig.parse(known["kubeconfig"], "the kubeconfig of the new cluster"), aks) as server:
                server.wait_for(wanted, known[_TIMEOUT], is_new=True, log=log_info, sleep=pause)
        except AccessError as error:
            raise PluginError(f"{error}. The cluster stays; bring the stack up again when that is fixed") from None
        return self.marked(inputs | {"openedAt": rfc3339.render(datetime.now(UTC))})
