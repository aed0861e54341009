"""The names that HyperShift's CLI gives the infrastructure of a hosted cluster (`hypershift create infra azure`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from identity.naming import resource_id

_COMPONENT_SUFFIX: Final = "-infrastructure"
# The default ranges (cmd/infra/azure/create.go:22-26).
ADDRESS_PREFIX: Final = "10.0.0.0/16"
SUBNET_ADDRESS_PREFIX: Final = "10.0.0.0/24"


def component_name(hosted_cluster: str) -> str:
    """Name of the component in the stack."""
    return f"{hosted_cluster}{_COMPONENT_SUFFIX}"


def cluster_of(component: str) -> str:
    """The hosted cluster whose component has this name."""
    return component.removesuffix(_COMPONENT_SUFFIX)


@dataclass(frozen=True)
class InfrastructureNames:
    """Names and ids of the parts. `cluster` is the HostedCluster's name.

    Sources, all in openshift/hypershift: cmd/infra/azure/resource_groups.go:65-68 (groups), networking.go:80 (security
    group), :147 (network), :136 (subnet), :185 (private zone), :228 (link), create.go:309-315 (load balancer, address).
    """

    subscription: str
    cluster: str
    infra_id: str

    @property
    def stem(self) -> str:
        """Name of the managed resource group, of the network, and of the private zone's link to it."""
        return f"{self.cluster}-{self.infra_id}"

    @property
    def managed_group(self) -> str:
        """Resource group of the cluster's own resources, private zone, load balancer and public address."""
        return self.stem

    @property
    def network_group(self) -> str:
        return f"{self.cluster}-vnet-{self.infra_id}"

    @property
    def security_group_group(self) -> str:
        return f"{self.cluster}-nsg-{self.infra_id}"

    @property
    def groups(self) -> tuple[str, str, str]:
        return self.managed_group, self.network_group, self.security_group_group

    @property
    def security_group(self) -> str:
        return f"{self.stem}-nsg"

    @property
    def egress(self) -> str:
        """Name of the load balancer, of each of its parts, and of its public address.

        The nodes join its backend pool of that name
        (hypershift-operator/controllers/hostedcluster/internal/platform/azure/azure.go:450-452).
        """
        return self.infra_id

    @property
    def network_id(self) -> str:
        return resource_id(self.subscription, self.network_group, "Microsoft.Network/virtualNetworks", self.stem)

    @property
    def subnet(self) -> str:
        return "default"

    @property
    def subnet_id(self) -> str:
        return f"{self.network_id}/subnets/{self.subnet}"

    @property
    def security_group_id(self) -> str:
        kind = "Microsoft.Network/networkSecurityGroups"
        return resource_id(self.subscription, self.security_group_group, kind, self.security_group)

    @property
    def egress_id(self) -> str:
        """ARM id of the load balancer."""
        return resource_id(self.subscription, self.managed_group, "Microsoft.Network/loadBalancers", self.egress)

    @property
    def address_id(self) -> str:
        """ARM id of the load balancer's public address."""
        return resource_id(self.subscription, self.managed_group, "Microsoft.Network/publicIPAddresses", self.egress)

    def private_zone(self, base_domain: str) -> str:
        """Name of the private DNS zone: the cluster's own domain."""
        return f"{self.cluster}.{base_domain}"

    def private_zone_id(self, base_domain: str) -> str:
        kind = "Microsoft.Network/privateDnsZones"
        return resource_id(self.subscription, self.managed_group, kind, self.private_zone(base_domain))
