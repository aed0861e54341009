"""What single values look like; resource ids are in `arm_ids.py`.

Sources: HyperShift's CRD (api/hypershift/v1beta1/azure.go and the generated manifest), the Secrets Store CSI provider
(pkg/provider/provider.go:99-108) and Azure's naming rules
(learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules).
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import replace
from typing import Annotated, Final
from urllib.parse import urlsplit

from identity.naming import RESOURCE_GROUP_PATTERN, VAULT_NAME_PATTERN
from identity.settings.schema.problems import NAMESPACE
from identity.settings.schema.schema_node import PLACEHOLDER, ValueSpec, form, matching, uuid, without_credentials


def _with_hyphens(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "-", text)


def _uuid_spec(rule: str, what: str, command: str) -> ValueSpec:
    return ValueSpec(
        rule=rule,
        accepted=f"the UUID of {what}, 8-4-4-4-12 hexadecimal digits",
        blank="<uuid>",
        check=uuid,
        hint=f"`{command}` prints it",
        guess=lambda text: text.strip("{} \n"),
    )


def _vault_object_spec(kind: str, *, rule: str) -> ValueSpec:
    return ValueSpec(
        rule=rule,
        accepted=f"the name of a Key Vault {kind}: 1-127 letters, digits and hyphens",
        blank=f"<{kind}>",
        check=matching(r"[a-zA-Z0-9-]{1,127}"),
        guess=_with_hyphens,
    )


def _identity_object_spec(what: str, longest: int, *, rule: str) -> ValueSpec:
    return ValueSpec(
        rule=rule,
        accepted=f'the name of {what}: 3-{longest} letters, digits, "-" and "_", starting with a letter or digit',
        blank="<name>",
        check=matching(rf"[a-zA-Z0-9][a-zA-Z0-9_-]{{2,{longest - 1}}}"),
        guess=_with_hyphens,
    )


TenantId = Annotated[str, _uuid_spec("tenant-id", "the Entra ID tenant", "az account show --query tenantId")]
SubscriptionId = Annotated[str, _uuid_spec("subscription-id", "the subscription", "az account show --query id")]
ClientId = Annotated[str, _uuid_spec("client-id", "the identity (client id)", "az identity show --query clientId")]
ObjectId = Annotated[str, _uuid_spec("object-id", "the principal (object id)", "az identity show --query principalId")]
RoleDefinitionGuid = Annotated[
    str,
    _uuid_spec("role-definition", "the role definition", "az role definition list --name <role> --query [].name"),
]
GroupId = Annotated[str, _uuid_spec("group-id", "the Entra ID group", "az ad group show --group <name> --query id")]

# HyperShift's operator compares locations of VNet, security group and resource group as plain strings. No region is
# called as YAML's booleans, which Pulumi hands over as text.
Location = Annotated[str, form("location", guess=lambda text: re.sub(r"[\s_-]+", "", text.lower()))]

_RESOURCE_GROUP: Final = form("resource-group", matching(RESOURCE_GROUP_PATTERN))
ResourceGroup = Annotated[str, _RESOURCE_GROUP]
# `spec.platform.azure.resourceGroup` of a HostedCluster, whose pattern asks for two characters.
ManagedResourceGroup = Annotated[
    str,
    replace(
        _RESOURCE_GROUP,
        rule="managed-resource-group",
        accepted=_RESOURCE_GROUP.accepted.replace("1-90", "2-90"),
        check=matching(r"(?=..)" + RESOURCE_GROUP_PATTERN),
    ),
]


# The schemes that the engine takes (pulumi/pulumi `pkg/backend/diy/backend.go`, IsDIYBackendURL), and Pulumi Cloud's.
StateBackend = Annotated[
    str, form("state-backend", without_credentials(r"(azblob|s3|gs|file|https)://[^\s/?#][^\s]*|file:///[^\s]*"))
]

# Vaults: Azure and the CSI provider; the HostedCluster API alone would take 255 characters.
VaultName = Annotated[str, form("vault-name", matching(VAULT_NAME_PATTERN), guess=_with_hyphens)]
SecretName = Annotated[str, _vault_object_spec("secret", rule="secret-name")]
KeyName = Annotated[str, _vault_object_spec("key", rule="key-name")]


def _key_version(text: str) -> str:
    matching(r"[0-9a-fA-F]{32}")(text)
    if not text.strip("0"):
        raise ValueError(PLACEHOLDER)
    return text


KeyVersion = Annotated[str, form("key-version", _key_version)]
ManagedIdentityName = Annotated[str, _identity_object_spec("a managed identity", 128, rule="managed-identity-name")]
# Resource name rules, Microsoft.ManagedIdentity (federatedIdentityCredentials).
FederatedCredentialName = Annotated[
    str, _identity_object_spec("a federated credential", 120, rule="federated-credential-name")
]
ManagedClusterName = Annotated[str, form("managed-cluster-name", guess=_with_hyphens)]

LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def label_spec(what: str, blank: str, longest: int = 63, *, rule: str) -> ValueSpec:
    """A label of the DNS, as Kubernetes and HyperShift take it for many names."""
    return ValueSpec(
        rule=rule,
        accepted=f'{what}: 1-{longest} lower-case letters, digits and "-", with a letter or digit at both ends',
        blank=blank,
        check=matching(rf"(?=.{{1,{longest}}}$){LABEL}"),
        guess=lambda text: _with_hyphens(text.lower()),
    )


def subdomain_spec(what: str, blank: str, longest: int = 253, *, rule: str) -> ValueSpec:
    """A subdomain of the DNS, as Kubernetes takes it for the other names."""
    return ValueSpec(
        rule=rule,
        accepted=f'the name of {what}: 1-{longest} lower-case letters, digits, "-" and "."',
        blank=blank,
        check=matching(rf"(?=.{{1,{longest}}}$){LABEL}(\.{LABEL})*"),
        guess=lambda text: _with_hyphens(text.lower()),
    )


_CLUSTER_NAME: Final = subdomain_spec("a hosted cluster", "<cluster>", 54, rule="cluster-name")
ClusterName = Annotated[str, replace(_CLUSTER_NAME, accepted=f"{_CLUSTER_NAME.accepted}, as a Kubernetes object")]
Namespace = Annotated[str, label_spec("a Kubernetes namespace", "<namespace>", rule="namespace")]
KubernetesSecretName = Annotated[
    str, subdomain_spec("a Secret in Kubernetes", "<secret>", rule="kubernetes-secret-name")
]
PodNetworkInstance = Annotated[
    str, label_spec("the name of a PodNetworkInstance", "<name>", rule="pod-network-instance")
]
InfraId = Annotated[str, label_spec("an infrastructure id", "<infra-id>", 253, rule="infra-id")]
# `spec.dns.baseDomain` (api/hypershift/v1beta1/hostedcluster_types.go:1138-1139); Azure has its zones in lower case.
DomainName = Annotated[str, form("domain-name", guess=lambda text: text.strip().rstrip(".").lower())]
StackName = Annotated[
    str,
    ValueSpec(
        rule="stack-name",
        accepted=f"the full name of a stack, such as organization/{NAMESPACE}/shared-dev",
        blank=f"<organization>/{NAMESPACE}/<stack>",
        check=matching(r"[\w.-]{1,100}/[\w.-]{1,100}/[\w.-]{1,100}"),
        hint='outside of Pulumi Cloud the organization is the word "organization"',
        guess=lambda text: f"organization/{NAMESPACE}/{text}",
    ),
]

NonEmpty = Annotated[str, form("non-empty")]
FilePath = Annotated[str, form("file-path")]
# Longer than a path that somebody would write, shorter than any credential document.
_LONGEST_DOCUMENT_PATH: Final = 500


def _document_path(text: str) -> str:
    if len(text) > _LONGEST_DOCUMENT_PATH or re.search(r'[{"]|-----', text):
        raise ValueError("it seems to be the document itself")
    return matching(r"[^\0\n]*\S")(text)


DocumentPath = Annotated[
    str,
    ValueSpec(
        rule="document-path",
        accepted=f"the path of a file, from the project's folder, of at most {_LONGEST_DOCUMENT_PATH} characters",
        blank="<path>",
        check=_document_path,
        hint="keep the document outside of the repository",
    ),
]
Image = Annotated[str, form("image")]


def _issuer(text: str) -> str:
    if not 1 <= len(text) <= 255 or not text.isascii() or re.search(r"\s|[?#@\\]", text):
        raise ValueError
    url = urlsplit(text)
    host = url.hostname
    if url.scheme != "https" or not host or url.port == 0:
        raise ValueError
    if "." not in host or host.endswith((".svc", ".local")) or re.fullmatch(r"[0-9.]+|.*:.*", host):
        raise ValueError("Entra ID has to read the issuer's keys there, over the internet")
    return text


IssuerUrl = Annotated[str, form("issuer-url", _issuer)]

# RFC 1918. Key Vault takes public addresses only.
PRIVATE_NETWORKS: Final = tuple(
    ipaddress.IPv4Network(prefix) for prefix in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
)


def _ip_range(text: str) -> str:
    try:
        interface = ipaddress.IPv4Interface(text)
    except ValueError:
        raise ValueError from None
    network = interface.network
    if interface.ip != network.network_address:
        raise ValueError("host bits are set")
    if any(map(network.subnet_of, PRIVATE_NETWORKS)):
        raise ValueError("a private network, which Key Vault refuses: allow its subnet in allowedSubnetIds")
    if any(map(network.overlaps, PRIVATE_NETWORKS)):
        raise ValueError("private networks are in it, and Key Vault takes public addresses only")
    return text


def _network_of(text: str) -> str:
    try:
        return str(ipaddress.IPv4Network(text.strip(), strict=False))
    except ValueError:
        return text


IpRange = Annotated[str, form("ip-range", _ip_range, guess=_network_of)]


# Azure's limits for tags of a resource.
TagName = Annotated[str, form("tag-name")]
TagValue = Annotated[str, form("tag-value")]
