"""The keys of the way to the management cluster."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import Field, StrictBool, StrictInt

from identity.credentials.schedule import LONGEST_POLL
from identity.login_kinds import LOGIN_KINDS, UNATTENDED, Flavour, LoginKind
from identity.settings.schema import types
from identity.settings.schema.base import FilledIn, Model
from identity.settings.schema.problems import enumerate_words
from identity.settings.schema.schema_node import ValueSpec, ascending, form, integer
from identity.similar import similar


def _unattended(kind: LoginKind) -> LoginKind:
    if kind not in UNATTENDED:
        raise ValueError("a run of the stack has nobody to ask")
    return kind


StackLogin = Annotated[
    LoginKind,
    ValueSpec(
        rule="login",
        accepted=enumerate_words(UNATTENDED, last="or"),
        blank=f"<{'|'.join(UNATTENDED)}>",
        check=_unattended,
        guess=lambda text: similar(text, UNATTENDED) or text,
    ),
]


class AccessSettings(Model):
    """How the stack signs in to the management cluster's API server (`identity.aks.login`)."""

    flavour: Flavour = Field(Flavour.IDSTACK, description="Program in the kubeconfig that makes the tokens.")
    login: StackLogin = Field(
        LoginKind.ARM,
        description="How the stack signs in to the API server, without a person (`docs/guides/aks-access.md`): "
        + "; ".join(f"`{kind}`, {LOGIN_KINDS[kind].description}" for kind in UNATTENDED)
        + ".",
    )
    client_id: types.ClientId | None = Field(None, description="Client id (UUID) of the identity that signs in.")
    certificate: types.FilePath | None = Field(
        None, description="With `login: certificate`: path of a credential document, PEM or PKCS#12."
    )
    client_secret_file: types.FilePath | None = Field(
        None, description="With `login: secret`: path of a file with the client secret."
    )
    federated_token_file: types.FilePath | None = Field(
        None, description="With `login: workload-identity`: path of a file with a token that Entra ID trusts."
    )
    public_fqdn: StrictBool = Field(False, description="Use the public name of a private cluster.")
    admin: StrictBool = Field(
        False, description="Use the administrators' static credential, which does not come from Entra ID."
    )


_SHORTEST_POLL: Final = timedelta(seconds=30)
_DURATION: Final = re.compile(r"(?:(\d{1,4})h)?(?:(\d{1,4})m)?(?:(\d{1,4})s)?", re.ASCII)


def _poll_interval(text: str) -> str:
    match = _DURATION.fullmatch(text)
    if match is None or not text:
        raise ValueError
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    interval = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if interval > LONGEST_POLL:
        raise ValueError("a renewal relies on a refresh of every mount within an hour")
    if interval < _SHORTEST_POLL:
        raise ValueError("each poll reads every mounted secret, and Key Vault limits how often")
    return text


PollInterval = Annotated[str, form("poll-interval", _poll_interval)]
KubernetesVersion = Annotated[str, form("kubernetes-version", guess=lambda text: text.strip().removeprefix("v"))]
VmSize = Annotated[str, form("vm-size", guess=lambda text: f"Standard_{text}")]


Zone = Annotated[StrictInt, integer(1, 3, "(the number of an availability zone)")]


class NodePoolSettings(Model):
    """The cluster's one node pool, whose machines also carry the cluster's own pods.

    Defaults are those of HyperShift's `contrib/managed-azure/setup_aks_cluster.sh` at 3ee9615, and all three zones.
    """

    vm_size: VmSize = Field(description="Size of the machines. It cannot be changed later.")
    count: Annotated[StrictInt, integer(1, 1000, "machines")] = Field(3, description="Number of machines.")
    zones: Annotated[tuple[Zone, ...], form("availability-zones", ascending)] = Field(
        (1, 2, 3),
        description="Availability zones of the machines; `[]` where the region, or this size there, has none. They "
        "cannot be changed later.",
    )
    max_pods: Annotated[StrictInt, integer(10, 250, "pods")] = Field(
        250, description="Largest number of pods on a machine. It cannot be changed later."
    )
    os_sku: Literal["AzureLinux", "Ubuntu"] = Field(
        "AzureLinux", alias="osSKU", description="Operating system of the machines."
    )
    fips: StrictBool = Field(True, description="Machines with cryptography that is validated by FIPS 140.")


class ClusterNetworkSettings(Model):
    """How pods are connected, and what limits it; neither can be changed later. Defaults are the same script's."""

    plugin: Literal["azure", "kubenet"] = Field("azure", description="Network plugin.")
    policy: Literal["azure", "calico", "none"] = Field(
        "azure", description="Engine of NetworkPolicies; with `none` they are not enforced."
    )


class CreationSettings(Model):
    """A cluster that the stack makes: AKS with Entra ID, without local accounts, with the secrets-store add-on."""

    kubernetes_version: Annotated[KubernetesVersion | None, FilledIn("AKS's default version")] = Field(
        None, description='Version of Kubernetes; `"1.34"` means its newest patch.'
    )
    node_pool: NodePoolSettings = Field(description="The one node pool of the cluster.")
    network: ClusterNetworkSettings = Field(ClusterNetworkSettings(), description="The cluster's network.")
    azure_rbac: StrictBool = Field(
        False,
        alias="azureRBAC",
        description="Azure role assignments decide in the cluster, the deployer's among them. Either this or "
        "`adminGroupObjectIDs`.",
    )
    admin_group_object_ids: tuple[types.GroupId, ...] = Field(
        (), alias="adminGroupObjectIDs", description="Entra ID groups that administer the cluster, by object id."
    )
    rotation_poll_interval: PollInterval = Field(
        "2m",
        description="How often the CSI driver looks for new versions of mounted secrets; since its release 1.6.0 the "
        "least time after a change (`docs/guides/stacks.md`).",
    )
