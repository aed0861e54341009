"""Where the local kube-apiserver's Services are."""

from __future__ import annotations

from ipaddress import IPv4Network

from hypothesis import given
from hypothesis import strategies as st

from localcloud.apiserver.commands import service_addresses

PORTS = st.integers(20000, 31999)


@given(PORTS, PORTS)
def test_local_clouds_with_ports_of_different_blocks_share_no_address(one: int, other: int) -> None:
    networks = IPv4Network(service_addresses(one)), IPv4Network(service_addresses(other))

    assert networks[0].overlaps(networks[1]) == (one // 16 == other // 16)
    assert all(network.subnet_of(IPv4Network("127.32.0.0/11")) for network in networks)
