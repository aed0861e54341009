"""The keys of a hosted cluster's DNS, private access and created network, and of the keys that sign its tokens."""

from __future__ import annotations

import re
from ipaddress import IPv4Network
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, StrictInt

from identity.naming import ADDRESS_PREFIX, SUBNET_ADDRESS_PREFIX
from identity.settings.schema import arm_ids, types
from identity.settings.schema.base import FilledIn, Model
from identity.settings.schema.schema_node import ValueSpec, ascending, form, integer


class DnsSettings(Model):
    """`spec.dns` of the HostedCluster: the domain of its applications, and the zones of their records."""

    base_domain: types.DomainName = Field(
        description="Domain below which the cluster has its own, `<name>.<baseDomain>`."
    )
    public_zone_id: arm_ids.DnsZoneId | None = Field(
        None,
        alias="publicZoneID",
        description="DNS zone of the public records; it exists already. Required for the exported `infra.json` and for "
        "a HostedCluster that the stack writes, and with `infrastructure: create`.",
    )
    private_zone_id: Annotated[
        arm_ids.PrivateDnsZoneId | None,
        FilledIn("none; with `infrastructure: create` `<name>.<baseDomain>` in `<name>-<infraID>`"),
    ] = Field(
        None,
        alias="privateZoneID",
        description="Private DNS zone of the records inside of the network, linked to it. Required as `publicZoneID` "
        "is.",
    )


Topology: TypeAlias = Literal["Public", "PublicAndPrivate", "Private"]


class PrivateLinkSettings(Model):
    """Access by Azure Private Link."""

    nat_subnet_id: arm_ids.SubnetId | None = Field(
        None,
        alias="natSubnetID",
        description="Subnet of the Private Link Service's addresses; without it HyperShift makes one in the cluster's "
        "network.",
    )
    additional_allowed_subscriptions: tuple[types.SubscriptionId, ...] = Field(
        (), description="Further subscriptions that may make private endpoints; the cluster's own always may."
    )


class SwiftSettings(Model):
    """Access by Azure Swift pod networking."""

    pod_network_instance: types.PodNetworkInstance = Field(
        description="PodNetworkInstance in the namespace of the hosted control plane."
    )


class PrivateSettings(Model):
    """How the API server is reached privately."""

    type: Literal["PrivateLink", "Swift"] = Field(
        description="`Swift` for a managed cluster (`docs/reference/hosted-clusters.md`); a HostedCluster never "
        "changes it."
    )
    private_link: PrivateLinkSettings | None = Field(None, description="Keys of `PrivateLink`.")
    swift: SwiftSettings | None = Field(None, description="Keys of `Swift`.")


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


# One more than a rotation needs: the key that signs, the one before it, and the one after it.
_MOST_KEYS: Final = 3

IssuerName = Annotated[
    str,
    # Microsoft.Storage: an account's name; `ccoctl azure create-oidc-issuer` gives the container the same one.
    form("issuer-name", guess=lambda text: re.sub(r"[^a-z0-9]", "", text.lower())),
]


def _published(generations: tuple[int, ...]) -> tuple[int, ...]:
    if not 1 <= len(generations) <= _MOST_KEYS:
        raise ValueError
    return ascending(generations)


Generation = Annotated[StrictInt, integer(1, 9999, "(the number of a key)")]


class SigningKeySettings(Model):
    """The key that signs the tokens of the cluster's service accounts."""

    vault_secret_name: types.SecretName | None = Field(
        None,
        description="With `issuer: existing`: name of a secret that exists in the vault and holds the private key "
        "(RSA, PEM).",
    )
    file: types.DocumentPath | None = Field(
        None,
        description="With `issuer: existing`: path of a file with the private key (RSA, PEM), which the stack stores "
        "in the vault; keep it outside of the repository.",
    )
    published: Annotated[
        tuple[Generation, ...],
        ValueSpec(
            rule="published-keys",
            accepted=f"a list of 1-{_MOST_KEYS} numbers of keys, ascending, such as [1, 2]",
            blank="[1]",
            check=_published,
        ),
    ] = Field((1,), description="With `issuer: create`: numbers of the keys whose public halves the issuer publishes.")
    signing: Generation = Field(
        1, description="With `issuer: create`: number of the published key that signs (`docs/explanation/issuer.md`)."
    )
    leaked: Annotated[tuple[Generation, ...], form("leaked-keys", ascending)] = Field(
        (),
        description="With `issuer: create`: numbers of keys that have leaked. They are published no longer, and the "
        "key after them signs at once (`docs/explanation/issuer.md`).",
    )
