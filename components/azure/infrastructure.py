"""The infrastructure of a hosted cluster, as `hypershift create infra azure` makes it."""

from __future__ import annotations

from typing import Final

import pulumi
from pulumi_azure_native import network, privatedns, resources

from identity import resource_types
from identity.settings import HostedClusterSettings, NetworkSettings, Settings

# openshift/hypershift cmd/infra/azure: create.go:25 (links and zones), networking.go:403-414 (probe), 485 (port)
# and 432-451 (outbound rule).
_GLOBAL: Final = "global"
_PROBE_PORT: Final = 30595
_PROBE_PATH: Final = "/healthz"
_PROBE_INTERVAL: Final = 5  # seconds
_PROBE_THRESHOLD: Final = 2
_OUTBOUND_PORTS: Final = 1024  # of each node
_IDLE_TIMEOUT: Final = 4  # minutes
# The hosted cluster's cloud provider writes these, and an update sends the whole load balancer with its tags.
_WRITTEN_BY_CLOUD_PROVIDER: Final = [
    "frontend_ip_configurations",
    "backend_address_pools",
    "probes",
    "load_balancing_rules",
    "outbound_rules",
    "inbound_nat_rules",
    "inbound_nat_pools",
    "tags",
]


class Infrastructure(pulumi.ComponentResource):
    """Resource groups, network with subnet and security group, private zone with link, and egress load balancer.

    Every id is known before anything exists, so resources that use one of them depend on this component. `ranges` are
    `cluster.network`, `base_domain` is that of `cluster.dns`.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        cluster: HostedClusterSettings,
        ranges: NetworkSettings,
        base_domain: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(resource_types.INFRASTRUCTURE, name, None, opts)
        self._name, self._settings, self._ranges = name, settings, ranges
        self._names = cluster.names(settings.subscription_id)
        self._location, self._tags = cluster.location, settings.tags
        managed = self._group("managed", self._names.managed_group)
        vnet = self._network(self._group("network", self._names.network_group))
        group = self._security_group(self._group("security", self._names.security_group_group))
        self._subnet(vnet, group)
        self._private_zone(managed, vnet, self._names.private_zone(base_domain))
        self._egress(managed)
        self.register_outputs({})

    def _group(self, word: str, name: str) -> resources.ResourceGroup:
        return resources.ResourceGroup(
            f"{self._name}-{word}-resource-group",
            resource_group_name=name,
            location=self._location,
            tags=self._tags,
            opts=self._after(),
        )

    def _security_group(self, owner: pulumi.Resource) -> network.NetworkSecurityGroup:
        return network.NetworkSecurityGroup(
            f"{self._name}-security-group",
            network_security_group_name=self._names.security_group,
            resource_group_name=self._names.security_group_group,
            location=self._location,
            tags=self._tags,
            opts=self._after(owner),
        )

    def _network(self, owner: pulumi.Resource) -> network.VirtualNetwork:
        return network.VirtualNetwork(
            f"{self._name}-network",
            virtual_network_name=self._names.stem,
            resource_group_name=self._names.network_group,
            location=self._location,
            tags=self._tags,
            address_space=network.AddressSpaceArgs(address_prefixes=[self._ranges.address_prefix]),
            opts=self._after(owner),
        )

    def _subnet(self, owner: pulumi.Resource, group: pulumi.Resource) -> network.Subnet:
        return network.Subnet(
            f"{self._name}-subnet",
            subnet_name=self._names.subnet,
            virtual_network_name=self._names.stem,
            resource_group_name=self._names.network_group,
            address_prefix=self._ranges.subnet_address_prefix,
            network_security_group=network.NetworkSecurityGroupArgs(id=self._names.security_group_id),
            opts=self._after(owner, group),
        )

    def _private_zone(self, owner: pulumi.Resource, vnet: pulumi.Resource, name: str) -> None:
        zone = privatedns.PrivateZone(
            f"{self._name}-private-zone",
            private_zone_name=name,
            resource_group_name=self._names.managed_group,
            location=_GLOBAL,
            tags=self._tags,
            opts=self._after(owner),
        )
        privatedns.VirtualNetworkLink(
            f"{self._name}-private-zone-link",
            virtual_network_link_name=self._names.stem,
            private_zone_name=name,
            resource_group_name=self._names.managed_group,
            location=_GLOBAL,
            tags=self._tags,
            virtual_network=privatedns.SubResourceArgs(id=self._names.network_id),
            registration_enabled=False,
            opts=self._after(zone, vnet),
        )

    def _egress(self, owner: pulumi.Resource) -> None:
        egress, group = self._names.egress, self._names.managed_group
        address = network.PublicIPAddress(
            f"{self._name}-egress-address",
            public_ip_address_name=egress,
            resource_group_name=group,
            location=self._location,
            tags=self._tags,
            sku=network.PublicIPAddressSkuArgs(name=network.PublicIPAddressSkuName.STANDARD),
            public_ip_address_version=network.IPVersion.I_PV4,
            public_ip_allocation_method=network.IPAllocationMethod.STATIC,
            idle_timeout_in_minutes=_IDLE_TIMEOUT,
            opts=self._after(owner),
        )
        balancer = self._names.egress_id
        pool = network.SubResourceArgs(id=f"{balancer}/backendAddressPools/{egress}")
        frontend = network.SubResourceArgs(id=f"{balancer}/frontendIPConfigurations/{egress}")
        network.LoadBalancer(
            f"{self._name}-egress",
            load_balancer_name=egress,
            resource_group_name=group,
            location=self._location,
            tags=self._tags,
            sku=network.LoadBalancerSkuArgs(name=network.LoadBalancerSkuName.STANDARD),
            frontend_ip_configurations=[
                network.FrontendIPConfigurationArgs(
                    name=egress,
                    private_ip_allocation_method=network.IPAllocationMethod.DYNAMIC,
                    public_ip_address=network.PublicIPAddressArgs(id=self._names.address_id),
                )
            ],
            backend_address_pools=[network.BackendAddressPoolArgs(name=egress)],
            probes=[
                network.ProbeArgs(
                    name=egress,
                    protocol=network.ProbeProtocol.HTTP,
                    port=_PROBE_PORT,
                    request_path=_PROBE_PATH,
                    interval_in_seconds=_PROBE_INTERVAL,
                    probe_threshold=_PROBE_THRESHOLD,
                )
            ],
            outbound_rules=[
                network.OutboundRuleArgs(
                    name=egress,
                    backend_address_pool=pool,
                    frontend_ip_configurations=[frontend],
                    protocol=network.LoadBalancerOutboundRuleProtocol.ALL,
                    allocated_outbound_ports=_OUTBOUND_PORTS,
                    enable_tcp_reset=True,
                    idle_timeout_in_minutes=_IDLE_TIMEOUT,
                )
            ],
            opts=pulumi.ResourceOptions.merge(
                self._after(address), pulumi.ResourceOptions(ignore_changes=_WRITTEN_BY_CLOUD_PROVIDER)
            ),
        )

    def _after(self, *needed: pulumi.Resource) -> pulumi.ResourceOptions:
        """Below this component, protected as the stack's vault is, and after the resources that it needs."""
        return pulumi.ResourceOptions(parent=self, protect=self._settings.protect, depends_on=list(needed) or None)


def create_infrastructure(
    name: str, settings: Settings, cluster: HostedClusterSettings, opts: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """Make the cluster's infrastructure, unless it exists already; what uses it depends on the result."""
    if cluster.infrastructure == "existing":
        return []
    if cluster.network is None or cluster.dns is None:
        raise AssertionError("the settings have both with infrastructure: create")
    return [Infrastructure(name, settings, cluster, cluster.network, cluster.dns.base_domain, opts)]
