"""The commands of HyperShift's CLI with their flags, for a shell with the variables of HyperShift's scripts.

Sources inside openshift/hypershift at 3ee9615: `contrib/managed-azure/setup_install_ho_on_aks.sh`,
`contrib/managed-azure/create_basic_hosted_cluster.sh`, `contrib/self-managed-azure/setup_hypershift_operator.sh`, and
where the flags are: `cmd/install/install.go:443-520`, `cmd/cluster/core/create.go:68-119`,
`cmd/cluster/azure/create.go:83-115`, `cmd/nodepool/azure/create.go:73-76`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from identity.hypershift import POD_SECURITY
from identity.outputs import StackOutputs, is_managed_cluster

# HyperShift's operator watches Routes and writes monitoring objects, which AKS does not have
# (setup_install_ho_on_aks.sh:16-19).
_MONITORING: Final = (
    "https://raw.githubusercontent.com/prometheus-operator/prometheus-operator/main/example/prometheus-operator-crd/"
)
DEFINITIONS: Final = (
    *(
        f"{_MONITORING}monitoring.coreos.com_{kind}.yaml"
        for kind in ("servicemonitors", "prometheusrules", "podmonitors")
    ),
    "https://raw.githubusercontent.com/openshift/api/6bababe9164ea6c78274fd79c94a3f951f8d5ab2/route/v1/"
    "zz_generated.crd-manifests/routes.crd.yaml",
)
_DOMAIN_FILTER: Final = "--external-dns-domain-filter"
_EXTERNAL_DOMAIN: Final = "--external-dns-domain"
_BASE_DOMAIN: Final = "--base-domain"
# Values that the stack does not know; the variables have the scripts' names, and MARKETPLACE_... those of their values.
_INSTALL_OWN: Final = {
    "--external-dns-credentials": "EXTERNAL_DNS_SERVICE_PRINCIPAL_FILEPATH",
    _DOMAIN_FILTER: "MGMT_DNS_ZONE_NAME",
    "--hypershift-image": "HYPERSHIFT_IMAGE",
    "--pull-secret": "PULL_SECRET",
}
_CLUSTER_OWN: Final = {
    _BASE_DOMAIN: "PARENT_DNS_ZONE",
    _EXTERNAL_DOMAIN: "MGMT_DNS_ZONE_NAME",
    "--azure-creds": "AZURE_CREDS",
    "--pull-secret": "PULL_SECRET",
    "--release-image": "RELEASE_IMAGE",
    "--sa-token-issuer-private-key-path": "SA_TOKEN_ISSUER_PRIVATE_KEY_PATH",
    "--marketplace-sku": "MARKETPLACE_SKU",
    "--marketplace-version": "MARKETPLACE_VERSION",
}


@dataclass(frozen=True)
class CliCommand:
    """One command: the program, the arguments that the stack knows, and a variable for each other flag."""

    program: str
    arguments: Sequence[str]
    own: Mapping[str, str]

    def __str__(self) -> str:
        lines = [self.program]
        for word in self.arguments:
            if word.startswith("--"):
                lines.append(word)
            else:
                lines[-1] += f" {shlex.quote(word)}"
        lines += [f'{flag} "${variable}"' for flag, variable in self._missing.items()]
        return " \\\n  ".join(lines)

    @property
    def variables(self) -> list[str]:
        """The variables that the command takes from its shell."""
        return list(self._missing.values())

    @property
    def _missing(self) -> dict[str, str]:
        return {flag: variable for flag, variable in self.own.items() if flag not in self.arguments}


def definitions() -> str:
    """The commands that a management cluster needs before `hypershift install`."""
    return "\n".join(f"kubectl apply --server-side -f {url}" for url in DEFINITIONS)


def install(outputs: StackOutputs[str], *, is_managed: bool) -> CliCommand:
    """`hypershift install` on the management cluster of the stack's hosted clusters with one kind of sign-in.

    Without `--tech-preview-no-upgrade`: HyperShift does not read the feature gate of managed identities
    (`hypershift-operator/featuregate/feature.go:17`), and the flag enables all other gates.
    """
    clusters = [
        cluster for cluster in outputs.get("hostedClusters", {}).values() if is_managed_cluster(cluster) == is_managed
    ]
    domains = {cluster.get("externalDnsDomain") for cluster in clusters}
    arguments = [
        "--enable-conversion-webhook=false",
        *("--external-dns-provider", "azure"),
        *(_managed_service(outputs) if is_managed else ()),
        *("--limit-crd-install", "Azure"),
    ]
    # External DNS takes one filter: the domain of all clusters, if they share it.
    if len(domains) == 1 and (domain := domains.pop()) is not None:
        arguments += [_DOMAIN_FILTER, domain]
    return CliCommand("hypershift install", arguments, _INSTALL_OWN)


def _managed_service(outputs: StackOutputs[str]) -> tuple[str, ...]:
    return (
        *("--managed-service", "ARO-HCP"),
        *("--aro-hcp-key-vault-users-client-id", outputs["keyVaultUserClientId"]),
    )


def create(flags: Mapping[str, str], *, has_host_names: bool) -> CliCommand:
    """`hypershift create cluster azure` with the values of these flags and the fixed ones.

    `has_host_names`: its services have names in an external domain, whose flag is an argument or a variable.
    """
    fixed = {
        # create_basic_hosted_cluster.sh:61,67,74,75,81
        "--annotations": "=".join(POD_SECURITY),
        "--node-pool-replicas": "2",
        "--marketplace-publisher": "azureopenshift",
        "--marketplace-offer": "aro4",
        "--diagnostics-storage-account-type": "Managed",
    }
    words = [*_words({**flags, **fixed}), "--generate-ssh"]
    return CliCommand("hypershift create cluster azure", words, _own_of_cluster(has_host_names))


def render(flags: Mapping[str, str], *, has_host_names: bool) -> CliCommand:
    """`hypershift create cluster azure --render`, which prints the objects without calls to Azure or Kubernetes."""
    variables = _own_of_cluster(has_host_names).items()
    own = {flag: variable for flag, variable in variables if not flag.startswith("--marketplace")}
    words = [*_words({**flags, "--annotations": "=".join(POD_SECURITY)}), "--render"]
    return CliCommand("hypershift create cluster azure", words, own)


def _words(flags: Mapping[str, str]) -> list[str]:
    return [word for pair in flags.items() for word in pair]


def _own_of_cluster(has_host_names: bool) -> dict[str, str]:
    return {flag: variable for flag, variable in _CLUSTER_OWN.items() if has_host_names or flag != _EXTERNAL_DOMAIN}


def domain_arguments(external: str | None, base: str | None) -> dict[str, str]:
    """The flags of the known domains; None is an unknown one."""
    return {flag: value for flag, value in ((_EXTERNAL_DOMAIN, external), (_BASE_DOMAIN, base)) if value is not None}
