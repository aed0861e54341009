"""The outputs of a run that only renews: those of the last whole run, with the renewed credentials' dates.

Such a run leaves everything else as it is, whatever the configuration says by now. So must what the stack exports.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import pulumi

from components.hypershift.hosted_cluster import Leaf
from identity.outputs import HostedClusterOutput, StackOutputs

_RENEWED: Final = ("notAfter", "renewAfter", "thumbprint", "generation")
# The credential source of an identity whose certificates the stack issues (`schema/hosted_clusters.py`).
_ISSUED_BY_STACK: Final = "entra-application"


def renewed_outputs(before: StackOutputs[str], now: StackOutputs[Leaf]) -> dict[str, Any]:
    """The outputs `before` with the new dates of every credential whose thumbprint has changed.

    Nothing else of the program's outputs, `now`, counts. A credential that the run did not renew is as before: nothing
    is known of a resource that failed or was not a target.
    """
    clusters = before.get("hostedClusters")
    if not clusters:
        return {**before}
    known = now.get("hostedClusters", {})
    return {
        **before,
        "hostedClusters": {
            name: {**cluster, "controlPlane": _rows(cluster, known[name])} if name in known else cluster
            for name, cluster in clusters.items()
        },
    }


def _rows(before: HostedClusterOutput[str], now: HostedClusterOutput[Leaf]) -> dict[str, Any]:
    """The identities as before, except those with certificates of the stack and an unchanged address."""
    return {
        field: _renewed(row, now["controlPlane"][field]) if _is_renewed_here(field, before, now) else row
        for field, row in before["controlPlane"].items()
    }


def _is_renewed_here(field: str, before: HostedClusterOutput[str], now: HostedClusterOutput[Leaf]) -> bool:
    address = before["credentialsInUse"].get(field)
    return (
        address is not None
        and address["principal"] == _ISSUED_BY_STACK
        and address == now["credentialsInUse"].get(field)
    )


def _renewed(before: Mapping[str, Any], now: Mapping[str, Any]) -> pulumi.Output[dict[str, Any]]:
    dates: pulumi.Output[dict[str, Any]] = pulumi.Output.from_input({name: now[name] for name in _RENEWED})

    async def merged() -> dict[str, Any]:
        renewed = await dates.future() if await dates.is_known() else None
        if not renewed or renewed["thumbprint"] in (None, before["thumbprint"]):
            return dict(before)
        return {**before, **renewed}

    async def always() -> bool:
        return True

    return pulumi.Output(
        dates.resources(), asyncio.ensure_future(merged()), asyncio.ensure_future(always()), dates.is_secret()
    )
