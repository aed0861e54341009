"""Objects that the program registers, each broken on purpose, with what a real API server answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from localcloud.testing.hosted_clusters import ABSENT

_AZURE: Final = "spec.platform.azure"
_MANAGED: Final = f"{_AZURE}.azureAuthenticationConfig.managedIdentities.controlPlane"


@dataclass(frozen=True)
class BrokenObject:
    """One change of a registered object, and the words in which it is refused.

    With `server_alone` the rule is in CEL, or is one of those of Kubernetes that the built-in API does not have.
    """

    kind: str
    path: str
    value: Any
    refusal: str
    server_alone: bool = False

    @property
    def name(self) -> str:
        """The id of the test case."""
        return f"{self.kind}: {self.path.rpartition('.')[2]}"


BROKEN: Final[tuple[BrokenObject, ...]] = (
    BrokenObject("AzureClusterIdentity", "spec.clientID", ABSENT, "spec.clientID: Required value"),
    BrokenObject("AzureClusterIdentity", "spec.type", "Certificate", 'spec.type: Unsupported value: "Certificate"'),
    BrokenObject("AzureClusterIdentity", "spec.tenantID", ABSENT, "spec.tenantID: Required value"),
    BrokenObject("AzureClusterIdentity", "spec.clientId", "x", 'unknown field "spec.clientId"'),
    BrokenObject("SecretProviderClass", "spec.parameters.usePodIdentity", False, "must be of type string"),
    BrokenObject("SecretProviderClass", "spec.parameter", {}, 'unknown field "spec.parameter"'),
    BrokenObject("HostedCluster", f"{_MANAGED}.network", ABSENT, f"{_MANAGED}.network: Required value"),
    BrokenObject(
        "HostedCluster",
        f"{_MANAGED}.disk.credentialsSecretName",
        "disk_hc1",
        f"{_MANAGED}.disk.credentialsSecretName in body should match",
    ),
    BrokenObject("HostedCluster", "spec.release.image", "x" * 254, "spec.release.image: Too long"),
    BrokenObject("HostedCluster", f"{_AZURE}.resourceGroupName", "x", f'unknown field "{_AZURE}.resourceGroupName"'),
    BrokenObject("HostedCluster", "spec.secretEncryption.type", ABSENT, "spec.secretEncryption.type: Required value"),
    BrokenObject("HostedCluster", "spec.issuerURL", "nowhere", "issuerURL must be a valid absolute URL", True),
    BrokenObject("HostedCluster", f"{_AZURE}.topology", "Private", "private", True),
    BrokenObject("Deployment", "spec.template.metadata.labels", {}, "`selector` does not match template `labels`"),
    BrokenObject("Deployment", "spec.replicas", "two", "replicas", True),
    BrokenObject("NetworkPolicy", "spec.egress.0.to.0.ipBlock.cidr", "0.0.0.0", "ipBlock.cidr", True),
    BrokenObject("PodDisruptionBudget", "spec.minAvailable", 1, "minAvailable and maxUnavailable cannot be both set"),
    BrokenObject("Namespace", "metadata.name", "Planes", 'metadata.name: Invalid value: "Planes'),
    BrokenObject("Secret", "data", {"cloud.conf": "{"}, "illegal base64 data"),
    BrokenObject("ConfigMap", "data", {"a b": "x"}, "a valid config key must consist of"),
)
