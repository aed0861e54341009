"""The Azure clouds whose names are served here, and the record of where this machine serves them.

Sources: azure-sdk-for-go `sdk/azcore/cloud`, go-autorest `autorest/azure/environments.go` (suffixes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from localcloud.core import yaml_text

# What pydantic finds, in the words of a file that a person wrote.


def problems(error: ValidationError) -> list[str]:
    """One line for each problem: `vaults[0].name: Field required`."""
    return [f"{place(problem['loc'])}: {problem['msg']}" for problem in error.errors(include_url=False)]


def place(parts: tuple[str | int, ...]) -> str:
    """`resources[3].name`; the whole file for no parts."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.removeprefix(".") or "the file"


# Reserved for the local cloud: no Entra tenant has this id.
LOCAL_TENANT_ID: Final = "10ca1000-0000-4000-8000-000000000001"
LOCAL_SUBSCRIPTION_ID: Final = "10ca1000-0000-4000-8000-000000000002"
# Names the record, `environment.json`, to the emulated plugins.
LOCAL_ENVIRONMENT_VARIABLE: Final = "IDSTACK_LOCAL_ENVIRONMENT"
# The cloud of a request to a local address.
DEFAULT_CLOUD: Final = "AzurePublicCloud"
# Microsoft's own applications behind every AKS-managed Entra integration, the same ids in every cloud and tenant
# (learn.microsoft.com/azure/aks/kubelogin-authentication).
AKS_SERVER_APP_ID: Final = "6dae42f8-4368-4678-94ff-3960e28e3630"
AKS_CLIENT_APP_ID: Final = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"


class LocalEnvironment(BaseModel):
    """Where the local cloud answers: the content of `environment.json`, whose keys are in camel case.

    Endpoints are URLs without a trailing slash, but for `authority_host`, which has one; the rest are absolute
    paths and UUIDs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    authority_host: str
    arm_endpoint: str
    graph_endpoint: str
    key_vault_endpoint: str
    blob_endpoint: str
    imds_endpoint: str
    # An HTTP proxy that answers Azure's public names.
    proxy_endpoint: str
    # The daemon's own service.
    control_endpoint: str
    ca_file: str
    # Who answers for Kubernetes: `builtin`, or `apiserver` for kube-apiserver.
    cluster: str
    kubernetes_endpoint: str
    kubeconfig: str
    state_dir: str
    mounts_dir: str
    tenant_id: str
    subscription_id: str
    deployer_client_id: str
    deployer_certificate: str

    @classmethod
    def from_file(cls, path: Path) -> LocalEnvironment:
        """Read the record; raises OSError, or ValueError for a file that is not one."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise ValueError(f"{path} is not a record of the local cloud: {problems(error)[0]}") from None

    def to_json(self) -> str:
        return self.model_dump_json(by_alias=True, indent=2) + "\n"


# Local addresses, which bypass the proxy.
_DIRECT: Final = ("localhost", "127.0.0.1", "::1")


def network(environment: LocalEnvironment) -> dict[str, str]:
    """The proxy, in both letter cases because some clients read only one, and the certificate authority."""
    proxies = {"https_proxy": environment.proxy_endpoint, "http_proxy": environment.proxy_endpoint}
    proxies["no_proxy"] = ",".join(_DIRECT)
    return {
        **proxies,
        **{name.upper(): value for name, value in proxies.items()},
        **dict.fromkeys(("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"), environment.ca_file),
    }


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """One Azure cloud. Scopes are what the SDKs ask tokens for, `/.default` included."""

    name: str
    authority_host: str
    arm_endpoint: str
    arm_scope: str
    graph_endpoint: str
    vault_suffix: str
    storage_suffix: str
    # The same in every cloud (azure-sdk-for-go sdk/storage/azblob, `TokenScope`).
    storage_scope: str = "https://storage.azure.com/.default"
    # One address for every vault, which is then named by the Host header.
    vault_endpoint: str | None = None

    @property
    def vault_scope(self) -> str:
        """What the SDKs ask tokens for a vault for."""
        return f"https://{self.vault_suffix}/.default"

    @property
    def managed_hsm_suffix(self) -> str:
        return f"managedhsm.{self.vault_suffix.removeprefix('vault.')}"

    def vault_uri(self, vault: str) -> str:
        return f"https://{vault}.{self.vault_suffix}"

    def vault_request(self, vault: str) -> tuple[str, Mapping[str, str]]:
        """Base URL and extra headers with which a client reaches the vault."""
        if self.vault_endpoint is None:
            return self.vault_uri(vault), {}
        return self.vault_endpoint, {"Host": f"{vault}.{self.vault_suffix}"}


_TABLE: Final = yaml_text.load(Path(__file__).with_suffix(".yaml").read_bytes())
CLOUDS: Final[Mapping[str, Cloud]] = MappingProxyType(
    {
        name: Cloud(
            name=name,
            authority_host=f"https://{row['authority']}/",
            arm_endpoint=f"https://{row['arm']}",
            # Two slashes: the audience ends in one (azcore `cloud.AzurePublic`).
            arm_scope=f"https://management.{row['audience']}//.default",
            graph_endpoint=f"https://{row['graph']}",
            vault_suffix=row["vault"],
            storage_suffix=row["audience"],
        )
        for name, row in _TABLE.items()
    }
)


def local_cloud(environment: LocalEnvironment) -> Cloud:
    """The cloud on this machine: the public cloud's names at loopback addresses."""
    return replace(
        CLOUDS[DEFAULT_CLOUD],
        name="local",
        authority_host=environment.authority_host,
        arm_endpoint=environment.arm_endpoint,
        graph_endpoint=environment.graph_endpoint,
        vault_endpoint=environment.key_vault_endpoint,
    )


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
    return (_host(cloud.authority_host), *_TABLE[cloud.name]["aliases"])


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
