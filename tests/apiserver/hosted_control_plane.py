"""A control plane of HyperShift in the namespace of `hc1`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from tests.apiserver.installed import DEFINITIONS, PATH, definition

GROUP = "hypershift.openshift.io"
NAMESPACE = "/api/v1/namespaces/clusters-hc1"
PLANES = f"/apis/{GROUP}/v1beta1/namespaces/clusters-hc1/hostedcontrolplanes"
# Without its rules.
_DEFINITION = definition(
    GROUP, "v1beta1", "HostedControlPlane", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
)


@contextmanager
def control_plane(administrator: httpx.Client) -> Iterator[None]:
    """HyperShift's kind, and the control plane; at the end both are gone, and the namespace as well."""
    administrator.post(DEFINITIONS, json=_DEFINITION).raise_for_status()
    plane = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "HostedControlPlane",
        "metadata": {"name": "hc1", "namespace": "clusters-hc1"},
    }
    while (created := administrator.post(PLANES, json=plane)).status_code == httpx.codes.NOT_FOUND:
        pass  # the API server serves a new kind after a moment
    created.raise_for_status()
    yield
    administrator.delete(f"{PLANES}/hc1").raise_for_status()
    administrator.delete(PATH.format(f"hostedcontrolplanes.{GROUP}")).raise_for_status()
    administrator.delete(NAMESPACE).raise_for_status()
    while administrator.get(NAMESPACE).is_success:
        pass
