"""The host names of Azure's clouds, and which service of which cloud each one is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from localcloud.core.clouds import CLOUDS, Cloud

# Other names of the same authorities (AzureAD/microsoft-authentication-library-for-python `msal/authority.py` and
# `discovery/instance` of login.microsoftonline.com).
_ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "AzurePublicCloud": ("login.windows.net", "login.microsoft.com", "sts.windows.net"),
    "AzureUSGovernmentCloud": ("login.usgovcloudapi.net",),
    "AzureChinaCloud": ("login.partner.microsoftonline.cn",),
}


@dataclass(frozen=True)
class PublicName:
    """What a host name means. `service` is the name of a service of the local cloud (`entra`, `arm`, `keyvault`)."""

    cloud: Cloud
    service: str


def named(host: str) -> PublicName | None:
    """The service with this host name, None for any other host."""
    _, _, domain = host.lower().partition(".")
    return _NAMES.get(host.lower()) or _NAMES.get(f"*.{domain}")


def authorities(cloud: Cloud) -> tuple[str, ...]:
    """The host names of the cloud's authority, its own one first."""
    return (_host(cloud.authority_host), *_ALIASES[cloud.name])


def certificate_names() -> tuple[str, ...]:
    """Every name that a client may ask for, for a certificate."""
    return tuple(_NAMES)


def _names() -> Iterator[tuple[str, PublicName]]:
    for cloud in CLOUDS.values():
        for authority in authorities(cloud):
            yield authority, PublicName(cloud, "entra")
        yield _host(cloud.arm_endpoint), PublicName(cloud, "arm")
        yield _host(cloud.graph_endpoint), PublicName(cloud, "graph")
        yield f"*.{cloud.vault_suffix}", PublicName(cloud, "keyvault")
        yield f"*.blob.{cloud.storage_suffix}", PublicName(cloud, "blob")


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


_NAMES: Final = dict(_names())
SERVICES: Final = frozenset(name.service for name in _NAMES.values())
