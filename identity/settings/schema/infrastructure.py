"""The keys of the infrastructure that the stack makes for a hosted cluster."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Annotated, Final

from pydantic import Field

from identity.infrastructure import ADDRESS_PREFIX, SUBNET_ADDRESS_PREFIX
from identity.settings.schema import types
from identity.settings.schema.base import Model
from identity.settings.schema.value_spec import ValueSpec

# azure-docs `virtual-network/virtual-networks-faq`: the smallest range of a network and of a subnet.
_SMALLEST: Final = 29
_LARGEST: Final = 8


def _range(text: str) -> str:
    try:
        network = IPv4Network(text)
    except ValueError:
        raise ValueError from None
    if "/" not in text or not _LARGEST <= network.prefixlen <= _SMALLEST:
        raise ValueError
    if not any(map(network.subnet_of, types.PRIVATE_NETWORKS)):
        raise ValueError("not a range for private networks")
    return str(network)


AddressPrefix = Annotated[
    str,
    ValueSpec(
        rule="address-prefix",
        accepted=f"a private IPv4 range (RFC 1918) of /{_LARGEST} to /{_SMALLEST} by its first address, "
        "such as 10.0.0.0/16",
        blank="<range>",
        check=_range,
    ),
]


class NetworkSettings(Model):
    """Address ranges of a network that the stack makes."""

    address_prefix: AddressPrefix = Field(ADDRESS_PREFIX, description="Range of the virtual network.")
    subnet_address_prefix: AddressPrefix = Field(
        SUBNET_ADDRESS_PREFIX, description="Range of the nodes' subnet, inside of the network's."
    )
