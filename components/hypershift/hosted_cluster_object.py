"""The HostedCluster that the stack applies: the user's part and the stack's part merged into one object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from components.hypershift.base_manifest import from_settings
from identity.hypershift import API_VERSION, KIND
from identity.settings import HostedClusterSettings

# HyperShift removes the finalizer once machines, volumes and load balancers are gone.
_LONGEST_DELETION: Final = "60m"


@dataclass(frozen=True)
class Conflict:
    """A value that differs between the user's part and the stack's part."""

    path: tuple[str, ...]
    user_value: Any
    stack_value: Any


@dataclass(frozen=True, kw_only=True)
class HostedClusterObjectArgs:
    """Inputs of `HostedClusterObject`; both parts are HostedClusters, and `conflicts` finds none between them."""

    manifest: Mapping[str, Any]
    stack_part: Mapping[str, Any]
    protect: bool


class HostedClusterObject(pulumi.ComponentResource):
    """The HostedCluster on the management cluster. Its namespace exists already, as it holds the pull secret."""

    def __init__(self, name: str, args: HostedClusterObjectArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:hypershift:HostedClusterObject", name, None, opts)
        hosted_cluster = merged(args.manifest, args.stack_part)
        CustomResource(
            f"{name}-object",
            api_version=API_VERSION,
            kind=KIND,
            metadata=hosted_cluster["metadata"],
            spec=hosted_cluster["spec"],
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=args.protect,
                custom_timeouts=pulumi.CustomTimeouts(delete=_LONGEST_DELETION),
            ),
        )
        self.register_outputs({})


def stack_part(cluster: HostedClusterSettings, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the HostedCluster that the stack alone decides; `spec` is the identity part."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": cluster.name, "namespace": cluster.namespace},
        "spec": {**from_settings(cluster), **spec},
    }


def merged(document: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, Any]:
    """Merge both parts recursively. A value in both is the same in both (`conflicts`)."""
    merged_document = {**document, **written}
    for key in document.keys() & written.keys():
        if isinstance(written[key], Mapping):
            merged_document[key] = merged(document[key], written[key])
    return merged_document


def conflicts(
    document: Mapping[str, Any], written: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[Conflict]:
    """Every place where the two parts differ, in the order of the stack's part."""
    for key, value in written.items():
        if key not in document:
            continue
        if isinstance(value, Mapping) and isinstance(document[key], Mapping):
            yield from conflicts(document[key], value, (*path, key))
        elif document[key] != value:
            yield Conflict((*path, key), document[key], value)
