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
# learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16: the wire server, where a node's agent gets
# its settings, and Azure's DNS.
_WIRE_SERVER: Final = "168.63.129.16/32"
_DNS: Final = 53


@dataclass(frozen=True, kw_only=True)
class MetadataBlockArgs:
    """Inputs of `MetadataBlock`."""

    namespace: str


class MetadataBlock(pulumi.ComponentResource):
    """Pods of the namespace reach everything but 169.254.169.254, where every caller gets the node's tokens, and
    168.63.129.16, where a node gets its settings; there only Azure's DNS is allowed.

    Pods are allowed by selector as well, because some network plugins (Cilium) match no pod by its address.
    """

    def __init__(self, name: str, args: MetadataBlockArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:kubernetes:MetadataBlock", name, None, opts)
        anywhere = networking.NetworkPolicyPeerArgs(
            ip_block=networking.IPBlockArgs(cidr="0.0.0.0/0", except_=[_METADATA, _WIRE_SERVER])
        )
        dns = networking.NetworkPolicyEgressRuleArgs(
            to=[networking.NetworkPolicyPeerArgs(ip_block=networking.IPBlockArgs(cidr=_WIRE_SERVER))],
            ports=[networking.NetworkPolicyPortArgs(protocol=protocol, port=_DNS) for protocol in ("UDP", "TCP")],
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
                    ),
                    dns,
                ],
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
