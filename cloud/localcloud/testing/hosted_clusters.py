"""A valid HostedCluster, and changes of it: those that keep it valid, and one for every rule that makes it invalid.

The rules are those of openshift/hypershift's own definition (api/hypershift/v1beta1/azure.go). The messages of rules in
CEL are this package's, all others are the API server's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

ABSENT: Final = object()
"""A value that removes the field."""

# A template: its one digit tells the UUIDs apart.
UUID: Final = "00000000-0000-4000-8000-00000000000{}"
SUBSCRIPTION: Final = f"/subscriptions/{UUID.format(1)}"
NETWORK: Final = f"{SUBSCRIPTION}/resourceGroups/hc1-network/providers/Microsoft.Network"


def hosted_cluster(name: str = "hc1", **changes: Any) -> dict[str, Any]:
    """A managed HostedCluster with every identity; `changes` are values by dotted path, with `__` for a dot."""
    document: dict[str, Any] = {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "infraID": f"{name}-infra",
            "issuerURL": "https://oidc.example.com/hc1",
            "serviceAccountSigningKey": {"name": "signer"},
            "release": {"image": "quay.io/openshift-release-dev/ocp-release:4.21.0"},
            "pullSecret": {"name": "pull"},
            "services": [
                {"service": service, "servicePublishingStrategy": {"type": "Route"}}
                for service in ("APIServer", "OAuthServer", "Konnectivity", "Ignition")
            ],
            "platform": {"type": "Azure", "azure": _azure()},
            "secretEncryption": {
                "type": "kms",
                "kms": {
                    "provider": "Azure",
                    "azure": {"kms": _identity("kms"), "activeKey": kms_key("kv-etcd")},
                },
            },
        },
    }
    for path, value in changes.items():
        document = changed(document, path.replace("__", "."), value)
    return document


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with another value at a dotted path (`ABSENT`: without it); numbers are indexes of a list."""
    copy = deepcopy(document)
    *outer, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    place: Any = copy
    for step in outer:
        place = place[step] if isinstance(step, int) else place.setdefault(step, {})
    if value is ABSENT:
        del place[last]
    else:
        place[last] = deepcopy(value)
    return copy


def _identity(secret: str) -> dict[str, str]:
    return {"clientID": UUID.format(3), "credentialsSecretName": f"{secret}-hc1-json", "objectEncoding": "utf-8"}


def kms_key(vault: str) -> dict[str, str]:
    """`activeKey` or `backupKey` at this vault."""
    return {"keyVaultName": vault, "keyName": "hc1-etcd", "keyVersion": "0123456789abcdef0123456789abcdef"}


def _azure() -> dict[str, Any]:
    names = ("cloudProvider", "nodePoolManagement", "controlPlaneOperator", "imageRegistry", "ingress", "network")
    return {
        "location": "eastus",
        "resourceGroup": "hc1-managed",
        "subscriptionID": UUID.format(1),
        "tenantID": UUID.format(2),
        "vnetID": f"{NETWORK}/virtualNetworks/hc1-vnet",
        "subnetID": f"{NETWORK}/virtualNetworks/hc1-vnet/subnets/default",
        "securityGroupID": f"{NETWORK}/networkSecurityGroups/hc1-nsg",
        "azureAuthenticationConfig": {
            "azureAuthenticationConfigType": "ManagedIdentities",
            "managedIdentities": {
                "controlPlane": {
                    "managedIdentitiesKeyVault": {"name": "kv-idstack", "tenantID": UUID.format(2)},
                    **{name: _identity(name.lower()) for name in (*names, "disk", "file")},
                },
                "dataPlane": {
                    name: UUID.format(4) for name in ("diskMSIClientID", "fileMSIClientID", "imageRegistryMSIClientID")
                },
            },
        },
    }


_AZURE: Final = "spec.platform.azure"
_AUTHENTICATION: Final = f"{_AZURE}.azureAuthenticationConfig"
_MANAGED: Final = f"{_AUTHENTICATION}.managedIdentities"
_CONTROL_PLANE: Final = f"{_MANAGED}.controlPlane"
_KMS: Final = "spec.secretEncryption.kms.azure"
_CPO: Final = f"{_CONTROL_PLANE}.controlPlaneOperator"


@dataclass(frozen=True)
class InvalidChange:
    """One change that makes the valid HostedCluster invalid.

    `field` and `message` are those of the error. `is_cel`: only kube-apiserver knows the rule.
    """

    path: str
    value: Any
    message: str
    field: str = ""
    is_cel: bool = False

    @property
    def name(self) -> str:
        """The id of the test case."""
        return f"{self.path.rpartition('.')[2]}: {self.message[:60]}"

    @property
    def refusal(self) -> str:
        """The API server's error."""
        return f"{self.field or self.path}: {self.message}"


def _subnet(*, group: str = "hc1-network", network: str = "hc1-vnet", subnet: str = "default") -> str:
    return (
        f"{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Network/virtualNetworks/{network}/subnets/{subnet}"
    )


_WORKLOAD: Final = {
    name: {"clientID": UUID.format(5)}
    for name in ("cloudProvider", "disk", "file", "imageRegistry", "ingress", "network", "nodePoolManagement")
}

VALID_CHANGES: Final[tuple[tuple[str, Any], ...]] = (
    (f"{_CONTROL_PLANE}.imageRegistry", ABSENT),
    (f"{_CPO}.clientID", ABSENT),
    (f"{_CPO}.objectEncoding", "hex"),
    (f"{_CPO}.objectEncoding", "base64"),
    ("spec.secretEncryption", ABSENT),
    (f"{_KMS}.backupKey", kms_key("kv-etcd")),
    (f"{_KMS}.keyVaultAccess", ""),
    (f"{_AZURE}.cloud", "AzureChinaCloud"),
    (f"{_AZURE}.topology", "Public"),
    (_AUTHENTICATION, {"azureAuthenticationConfigType": "WorkloadIdentities", "workloadIdentities": _WORKLOAD}),
    (f"{_AZURE}.tenantID", "not-a-uuid"),
)
"""Changes after which the HostedCluster is still valid."""

_REQUIRED: Final = "Required value"


def _shorter(field: str, text: str, limit: int) -> InvalidChange:
    return InvalidChange(field, text, f'Invalid value: "{text}": {field} in body should be at least {limit} chars long')


def _unmatched(field: str, text: str, pattern: str) -> InvalidChange:
    return InvalidChange(field, text, f"Invalid value: \"{text}\": {field} in body should match '{pattern}'")


def _longer(field: str, limit: int) -> InvalidChange:
    return InvalidChange(field, "x" * (limit + 1), f"Too long: may not be more than {limit} bytes")


def _unsupported(field: str, text: str, *supported: str) -> InvalidChange:
    named = ", ".join(f'"{value}"' for value in supported)
    return InvalidChange(field, text, f'Unsupported value: "{text}": supported values: {named}')


def _rule(path: str, value: Any, message: str, *, field: str = "") -> InvalidChange:
    """A rule in CEL. The error of a rule about an object leaves the value out."""
    return InvalidChange(path, value, f"Invalid value: {message}", field, is_cel=True)


def _string_rule(path: str, text: str, message: str) -> InvalidChange:
    return _rule(path, text, f'"{text}": {message}')


_CLOUDS: Final = ("Public", "USGovernment", "China", "German", "Bleu", "Stack")
_SUBNET_RULES: Final = {
    "a/b": "subnetID must be the ARM id of a subnet, "
    "/subscriptions/../resourceGroups/../providers/Microsoft.Network/virtualNetworks/../subnets/..",
    _subnet(group=""): "the resource group in subnetID has 1 to 90 "
    "letters, digits, hyphens, underscores, periods and parentheses",
    _subnet(group="g."): "the resource group in subnetID must not end with a period",
    _subnet(network="v"): "the virtual network in subnetID has 2 to 64 "
    "letters, digits, hyphens, underscores and periods",
    _subnet(network="vn-"): "the virtual network in subnetID must not end with a period or hyphen",
    _subnet(subnet="_"): "the subnet in subnetID has 1 to 80 "
    "letters, digits, hyphens and underscores, and begins with a letter or digit",
    _subnet(subnet="s."): "the subnet in subnetID must not end with a period or hyphen",
}
_MANAGED_ONLY: Final = "managedIdentities is required with type ManagedIdentities, and forbidden otherwise"
_WORKLOAD_ONLY: Final = "workloadIdentities is required with type WorkloadIdentities, and forbidden otherwise"
_STRATEGY: Final = "servicePublishingStrategy.type"
_REGISTRY: Final = f"{_AZURE}.containerRegistry"
_NO_IDENTITY: Final = f"{SUBSCRIPTION}/resourceGroups/{'g' * 80}"

INVALID_CHANGES: Final[tuple[InvalidChange, ...]] = (
    # 3.1: the platform
    *(
        InvalidChange(f"{_AZURE}.{field}", ABSENT, _REQUIRED)
        for field in (
            *("location", "subscriptionID", "tenantID", "vnetID", "subnetID", "securityGroupID"),
            "azureAuthenticationConfig",
        )
    ),
    *(
        _longer(f"{_AZURE}.{field}", limit)
        for field, limit in (
            *(("location", 255), ("subscriptionID", 255), ("tenantID", 255), ("vnetID", 255)),
            *(("securityGroupID", 255), ("resourceGroup", 90)),
        )
    ),
    _unmatched(f"{_AZURE}.resourceGroup", "ends.", r"^[a-zA-Z0-9_()\-\.]{1,89}[a-zA-Z0-9_()\-]$"),
    _unsupported(f"{_AZURE}.cloud", "AzureCloud", *(f"Azure{cloud}Cloud" for cloud in _CLOUDS)),
    _unsupported(f"{_AZURE}.topology", "Hidden", "Public", "PublicAndPrivate", "Private"),
    _rule(
        f"{_AZURE}.topology",
        "Private",
        "private is required with topology Private or PublicAndPrivate, and forbidden otherwise",
        field=_AZURE,
    ),
    _rule(
        f"{_AZURE}.private",
        {"type": "Swift", "swift": {"podNetworkInstance": "pni"}},
        "private is required with topology Private or PublicAndPrivate, and forbidden otherwise",
        field=_AZURE,
    ),
    _rule(
        _REGISTRY,
        {"credentials": {"type": "ManagedIdentity"}},
        "managedIdentity is required with type ManagedIdentity, and forbidden otherwise",
        field=f"{_REGISTRY}.credentials",
    ),
    _rule(
        _REGISTRY,
        {"credentials": {"type": "ManagedIdentity", "managedIdentity": {"resourceID": _NO_IDENTITY}}},
        f'"{_NO_IDENTITY}": resourceID must be the ARM id of a user-assigned managed identity',
        field=f"{_REGISTRY}.credentials.managedIdentity.resourceID",
    ),
    _shorter("spec.infraID", "", 1),
    _string_rule(
        "spec.infraID",
        "Upper",
        "infraID consists of lower-case letters, digits and hyphens, and begins and ends with a letter or digit",
    ),
    _string_rule("spec.issuerURL", "nowhere", "issuerURL must be a valid absolute URL"),
    _longer("spec.issuerURL", 255),
    # 3.2: the union and the identities
    InvalidChange(f"{_AUTHENTICATION}.azureAuthenticationConfigType", ABSENT, _REQUIRED),
    _unsupported(
        f"{_AUTHENTICATION}.azureAuthenticationConfigType", "Passwords", "ManagedIdentities", "WorkloadIdentities"
    ),
    _rule(_MANAGED, ABSENT, _MANAGED_ONLY, field=_AUTHENTICATION),
    _rule(f"{_AUTHENTICATION}.workloadIdentities", _WORKLOAD, _WORKLOAD_ONLY, field=_AUTHENTICATION),
    _rule(
        f"{_AUTHENTICATION}.azureAuthenticationConfigType", "WorkloadIdentities", _MANAGED_ONLY, field=_AUTHENTICATION
    ),
    *(
        InvalidChange(
            _AUTHENTICATION,
            {
                "azureAuthenticationConfigType": "WorkloadIdentities",
                "workloadIdentities": {name: identity for name, identity in _WORKLOAD.items() if name != missing},
            },
            _REQUIRED,
            f"{_AUTHENTICATION}.workloadIdentities.{missing}",
        )
        for missing in _WORKLOAD
    ),
    InvalidChange(f"{_MANAGED}.controlPlane", ABSENT, _REQUIRED),
    InvalidChange(f"{_MANAGED}.dataPlane", ABSENT, _REQUIRED),
    *(
        InvalidChange(f"{_CONTROL_PLANE}.managedIdentitiesKeyVault.{member}", ABSENT, _REQUIRED)
        for member in ("name", "tenantID")
    ),
    *(_longer(f"{_CONTROL_PLANE}.managedIdentitiesKeyVault.{member}", 255) for member in ("name", "tenantID")),
    *(
        InvalidChange(f"{_CONTROL_PLANE}.{identity}", ABSENT, _REQUIRED)
        for identity in (
            *("managedIdentitiesKeyVault", "cloudProvider", "nodePoolManagement", "controlPlaneOperator"),
            *("ingress", "network", "disk", "file"),
        )
    ),
    *(
        InvalidChange(f"{_CONTROL_PLANE}.{identity}.{field}", ABSENT, _REQUIRED)
        for identity in (
            *("cloudProvider", "nodePoolManagement", "controlPlaneOperator", "imageRegistry"),
            *("ingress", "network", "disk", "file"),
        )
        for field in ("credentialsSecretName", "objectEncoding")
    ),
    InvalidChange(f"{_CONTROL_PLANE}.imageRegistry", {}, _REQUIRED, f"{_CONTROL_PLANE}.imageRegistry.objectEncoding"),
    _shorter(f"{_CPO}.clientID", "short", 36),
    _longer(f"{_CPO}.clientID", 36),
    _unmatched(f"{_CPO}.clientID", "g" * 36, "^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$"),
    _string_rule(f"{_CPO}.clientID", "g" * 36, "the client ID of a managed identity must be a UUID"),
    _shorter(f"{_CPO}.credentialsSecretName", "", 1),
    _longer(f"{_CPO}.credentialsSecretName", 127),
    _unmatched(f"{_CPO}.credentialsSecretName", "under_score", "^[a-zA-Z0-9-]+$"),
    _unsupported(f"{_CPO}.objectEncoding", "UTF-8", "utf-8", "hex", "base64"),
    _unsupported(f"{_CPO}.objectEncoding", "", "utf-8", "hex", "base64"),
    *(
        InvalidChange(f"{_MANAGED}.dataPlane.{field}", ABSENT, _REQUIRED)
        for field in ("diskMSIClientID", "fileMSIClientID", "imageRegistryMSIClientID")
    ),
    _longer(f"{_MANAGED}.dataPlane.diskMSIClientID", 255),
    # 3.3: other admission rules
    _shorter(f"{_AZURE}.subnetID", "", 1),
    _longer(f"{_AZURE}.subnetID", 355),
    *(_string_rule(f"{_AZURE}.subnetID", subnet, message) for subnet, message in _SUBNET_RULES.items()),
    _longer("spec.release.image", 253),
    _string_rule(
        "spec.release.image", "-x", "image must begin with a letter, digit or underscore and have no white space"
    ),
    *(
        _rule(
            "spec.services.0.servicePublishingStrategy.route",
            {"hostname": name},
            f'"{name}": hostname must be a valid domain name',
            field="spec.services[0].servicePublishingStrategy.route.hostname",
        )
        for name in ("api_1.example.com", "api", "api.example.com.")
    ),
    _unsupported("spec.controllerAvailabilityPolicy", "Some", "HighlyAvailable", "SingleReplica"),
    _unsupported("spec.olmCatalogPlacement", "Some", "management", "guest"),
    _rule("spec.services", [], "spec.services needs at least 4 items (3 for IBMCloud)", field="spec"),
    _rule(
        f"spec.services.1.{_STRATEGY}",
        "LoadBalancer",
        "managed Azure (ARO HCP) requires OAuthServer to be published by Route",
        field="spec",
    ),
    *(
        _rule(
            f"spec.services.{place}.{_STRATEGY}",
            "LoadBalancer",
            f"Azure requires {service} to be published by Route",
            field="spec",
        )
        for place, service in ((2, "Konnectivity"), (3, "Ignition"))
    ),
    # 3.4: etcd encryption
    InvalidChange("spec.secretEncryption.type", ABSENT, _REQUIRED),
    _unsupported("spec.secretEncryption.type", "secretbox", "kms", "aescbc"),
    _unsupported("spec.secretEncryption.kms.provider", "GCP", "IBMCloud", "AWS", "Azure"),
    InvalidChange(f"{_KMS}.activeKey", ABSENT, _REQUIRED),
    *(
        problem
        for field in ("keyVaultName", "keyName", "keyVersion")
        for problem in (
            InvalidChange(f"{_KMS}.activeKey.{field}", ABSENT, _REQUIRED),
            _shorter(f"{_KMS}.activeKey.{field}", "", 1),
            _longer(f"{_KMS}.activeKey.{field}", 255),
        )
    ),
    _rule(f"{_KMS}.backupKey", kms_key("other"), "backupKey must be in the same key vault as activeKey", field=_KMS),
    _rule(f"{_KMS}.kms", ABSENT, "one of kms or workloadIdentity must be set", field=_KMS),
    _rule(
        f"{_KMS}.workloadIdentity",
        {"clientID": UUID.format(6)},
        "kms and workloadIdentity exclude each other",
        field=_KMS,
    ),
    _unsupported(f"{_KMS}.keyVaultType", "Hsm", "KeyVault", "ManagedHSM"),
    _unsupported(f"{_KMS}.keyVaultAccess", "Closed", "Public", "Private", ""),
    InvalidChange(f"{_KMS}.kms.objectEncoding", ABSENT, _REQUIRED),
    # the other required fields of a HostedCluster
    *(InvalidChange(f"spec.{field}", ABSENT, _REQUIRED) for field in ("platform", "services", "release", "pullSecret")),
)
"""Changes after which the HostedCluster is invalid, and the error."""


def _mappings(document: Mapping[str, Any], path: str) -> Iterator[str]:
    """Dotted path of every mapping in a document, its own first."""
    yield path
    for key, value in document.items():
        if isinstance(value, dict):
            yield from _mappings(value, f"{path}.{key}")


UNKNOWN_FIELDS: Final[tuple[str, ...]] = (
    f"{_AZURE}.resourceGroupName",
    f"{_CPO}.clientId",
    f"{_CPO}.certificateName",
    f"{_CONTROL_PLANE}.velero",
    f"{_KMS}.activeKey.version",
    "spec.platfrom",
    *(
        f"{path}.unheardOf"
        for part in ("platform", "secretEncryption")
        for path in _mappings(hosted_cluster()["spec"][part], f"spec.{part}")
    ),
)
"""Fields that strict validation rejects and that are dropped without it: likely mistakes, and one at every level."""

IMMUTABLE_FIELDS: Final[tuple[InvalidChange, ...]] = (
    *(
        _rule(f"{_AZURE}.{field}", value, f'"{value}": {field} is immutable')
        for field, value in {
            "location": "westus",
            "resourceGroup": "another",
            "subscriptionID": UUID.format(9),
            "vnetID": f"{NETWORK}/virtualNetworks/another",
            "subnetID": _subnet(subnet="another"),
            "securityGroupID": f"{NETWORK}/networkSecurityGroups/another",
        }.items()
    ),
    _rule("spec.infraID", "another", '"another": infraID is immutable'),
    _rule("spec.issuerURL", "https://b.example.com", '"https://b.example.com": issuerURL is immutable'),
    _rule("spec.platform.type", "None", '"None": the platform\'s type is immutable'),
    _rule("spec.services.0.service", "OIDC", "services is immutable", field="spec"),
    _rule(
        "spec.controllerAvailabilityPolicy",
        "SingleReplica",
        '"SingleReplica": controllerAvailabilityPolicy is immutable',
    ),
    _rule("spec.olmCatalogPlacement", "guest", '"guest": olmCatalogPlacement is immutable'),
    _rule("spec.secretEncryption", ABSENT, "secretEncryption cannot be removed once it is set", field="spec"),
    _rule(f"{_KMS}.keyVaultType", "ManagedHSM", "keyVaultType is immutable", field=_KMS),
    _rule(
        f"{_AZURE}.private",
        {"type": "Swift", "swift": {"podNetworkInstance": "pni"}},
        "private cannot be added or removed later",
        field=_AZURE,
    ),
)
"""Changes of an existing HostedCluster, all rejected."""
