"""NetworkPolicy that keeps a control plane's pods from the nodes' instance metadata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi_kubernetes.meta import v1 as meta
from pulumi_kubernetes.networking import v1 as networking

_NAME: Final = "block-instance-metadata"
# learn.microsoft.com/azure/virtual-machines/instance-metadata-service: the same address on every machine.
_METADATA: Final = "169.254.169.254/32"


@dataclass(frozen=True, kw_only=True)
class MetadataBlockArgs:
    """Inputs of `MetadataBlock`."""

    namespace: str


class MetadataBlock(pulumi.ComponentResource):
    """Every pod of the namespace reaches everything but 169.254.169.254, where whoever asks gets the node's tokens.

    Pods are named besides the addresses, because some network plugins (Cilium) match no pod by its address. No outputs.
    """

    def __init__(self, name: str, args: MetadataBlockArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:MetadataBlock", name, None, opts)
        anywhere = networking.NetworkPolicyPeerArgs(
            ip_block=networking.IPBlockArgs(cidr="0.0.0.0/0", except_=[_METADATA])
        )
        networking.NetworkPolicy(
            f"{name}-policy",
            metadata=meta.ObjectMetaArgs(name=_NAME, namespace=args.namespace),
            spec=networking.NetworkPolicySpecArgs(
                pod_selector=meta.LabelSelectorArgs(),
                policy_types=["Egress"],
                egress=[
                    networking.NetworkPolicyEgressRuleArgs(
                        to=[
                            anywhere,
                            networking.NetworkPolicyPeerArgs(ip_block=networking.IPBlockArgs(cidr="::/0")),
                            networking.NetworkPolicyPeerArgs(namespace_selector=meta.LabelSelectorArgs()),
                        ]
                    )
                ],
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
