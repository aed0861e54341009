"""The Azure clouds a stack can live in: their endpoints, and the local cloud's.

Authority, ARM endpoint and suffixes always come from one row, so they cannot disagree. Sources: azure-sdk-for-go
`sdk/azcore/cloud`, HyperShift `support/azureutil/constants.go` (vault suffixes) and `support/azureutil/azureutil.go`,
go-autorest `autorest/azure/environments.go` (storage suffixes).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

# Reserved for the local cloud: no Entra tenant has this id, and the emulated providers serve no other.
LOCAL_TENANT_ID: Final = "10ca1000-0000-4000-8000-000000000001"
LOCAL_SUBSCRIPTION_ID: Final = "10ca1000-0000-4000-8000-000000000002"
LOCAL_CLOUD: Final = "local"
DEFAULT_CLOUD: Final = "AzurePublicCloud"

# Names the file with the local cloud's endpoints, for the program, the provider plugins and the `idstack` command.
LOCAL_ENVIRONMENT_VARIABLE: Final = "IDSTACK_LOCAL_ENVIRONMENT"


@dataclass(frozen=True, kw_only=True)
class LocalEnvironment:
    """The local cloud's endpoints: the content of `environment.json` and of `idstack local env --json`.

    The local cloud writes it (`cloud/localcloud/core/clouds.py`), with the same members in camel case. Endpoints are
    URLs without a trailing slash, but for `authority_host`, which has one; the rest are absolute paths and UUIDs.
    """

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
        document = json.loads(path.read_text(encoding="utf-8"))
        try:
            return cls(**{re.sub("[A-Z]", r"_\g<0>", key).lower(): value for key, value in document.items()})
        except (AttributeError, TypeError) as error:
            raise ValueError(f"{path} is not a record of the local cloud: {error}") from None


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """One Azure cloud. Scopes are what the SDKs ask tokens for, `/.default` included."""

    name: str
    authority_host: str
    arm_endpoint: str
    arm_scope: str
    graph_endpoint: str
    graph_scope: str
    vault_suffix: str
    vault_scope: str
    storage_suffix: str
    storage_scope: str
    # `spec.platform.azure.cloud` of a HostedCluster.
    hosted_cluster_cloud: str
    # `userAssignedIdentityCredentialsCloudType` of CAPZ's AzureClusterIdentity.
    capz_cloud_type: str
    # Only the local cloud has one address for all vaults, which the Host header names.
    vault_endpoint: str | None = None
    # The same for storage accounts.
    blob_endpoint: str | None = None

    @property
    def managed_hsm_suffix(self) -> str:
        """Suffix of a managed HSM's address (`support/azureutil/constants.go`: the vaults' with another first word)."""
        return f"managedhsm.{self.vault_suffix.removeprefix('vault.')}"

    @property
    def managed_hsm_scope(self) -> str:
        """The scope of tokens for a managed HSM."""
        return f"https://{self.managed_hsm_suffix}/.default"

    def vault_uri(self, vault: str) -> str:
        """The vault's own address, as Azure announces it."""
        return f"https://{vault}.{self.vault_suffix}"

    def vault_request(self, vault: str) -> tuple[str, Mapping[str, str]]:
        """Base URL and extra headers with which a client reaches the vault."""
        if self.vault_endpoint is None:
            return self.vault_uri(vault), {}
        return self.vault_endpoint, {"Host": f"{vault}.{self.vault_suffix}"}

    def public_request(self, url: str) -> tuple[str, Mapping[str, str]]:
        """URL and extra headers with which a client reads public documents, such as an issuer's."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        if self.blob_endpoint is None or not host.endswith(f".blob.{self.storage_suffix}"):
            return url, {}
        return f"{self.blob_endpoint}{parts.path}", {"Host": host}


def _azure(
    name: str, *, login: str, arm: str, arm_audience: str, graph: str, vault_suffix: str, storage_suffix: str, capz: str
) -> Cloud:
    return Cloud(
        name=name,
        authority_host=f"https://{login}/",
        arm_endpoint=f"https://{arm}",
        # Two slashes: the audience ends in one (azcore `cloud.AzurePublic`).
        arm_scope=f"https://{arm_audience}//.default",
        graph_endpoint=f"https://{graph}",
        graph_scope=f"https://{graph}/.default",
        vault_suffix=vault_suffix,
        vault_scope=f"https://{vault_suffix}/.default",
        storage_suffix=storage_suffix,
        # The same in every cloud (azure-sdk-for-go sdk/storage/azblob, `TokenScope`).
        storage_scope="https://storage.azure.com/.default",
        hosted_cluster_cloud=name,
        capz_cloud_type=capz,
    )


# AzureGermanCloud is closed, and CAPZ knows these three only (HyperShift `internal/platform/azure/azure.go:513-525`).
CLOUDS: Final[Mapping[str, Cloud]] = MappingProxyType(
    {
        cloud.name: cloud
        for cloud in (
            _azure(
                "AzurePublicCloud",
                login="login.microsoftonline.com",
                arm="management.azure.com",
                arm_audience="management.core.windows.net",
                graph="graph.microsoft.com",
                vault_suffix="vault.azure.net",
                storage_suffix="core.windows.net",
                capz="public",
            ),
            _azure(
                "AzureUSGovernmentCloud",
                login="login.microsoftonline.us",
                arm="management.usgovcloudapi.net",
                arm_audience="management.core.usgovcloudapi.net",
                graph="graph.microsoft.us",
                vault_suffix="vault.usgovcloudapi.net",
                storage_suffix="core.usgovcloudapi.net",
                capz="usgovernment",
            ),
            _azure(
                "AzureChinaCloud",
                login="login.chinacloudapi.cn",
                arm="management.chinacloudapi.cn",
                arm_audience="management.core.chinacloudapi.cn",
                graph="microsoftgraph.chinacloudapi.cn",
                vault_suffix="vault.azure.cn",
                storage_suffix="core.chinacloudapi.cn",
                capz="china",
            ),
        )
    }
)


def is_known_authority(host: str) -> bool:
    """Whether this is the authority host of one of Azure's clouds, with or without the slash at its end."""
    return f"{host.rstrip('/')}/".lower() in {cloud.authority_host for cloud in CLOUDS.values()}


def local_cloud(environment: LocalEnvironment) -> Cloud:
    """The cloud on this machine: the public cloud's names at loopback addresses."""
    return replace(
        CLOUDS["AzurePublicCloud"],
        name=LOCAL_CLOUD,
        authority_host=environment.authority_host,
        arm_endpoint=environment.arm_endpoint,
        graph_endpoint=environment.graph_endpoint,
        vault_endpoint=environment.key_vault_endpoint,
        blob_endpoint=environment.blob_endpoint,
    )
