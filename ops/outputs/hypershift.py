"""A hosted cluster's outputs for HyperShift's CLI: files, and the flags of the cluster.

Sources inside openshift/hypershift at 3ee9615. Flags: see `hypershift_commands.py`. Files: `cmd/infra/azure/create.go`
(:237-290) reads the identity files as the structs ControlPlaneManagedIdentities, DataPlaneManagedIdentities and
AzureWorkloadIdentities of `api/hypershift/v1beta1/azure.go`, `cmd/cluster/azure/create.go:323-334` the infrastructure.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from identity.catalogue import CONTROL_PLANE
from identity.clouds import CLOUDS
from identity.hypershift import API_VERSION, KIND
from identity.outputs import (
    AzurePlatformSpec,
    HostedClusterOutput,
    HostedClusterSpec,
    KmsAzureSpec,
    ManagedIdentitiesSpec,
    StackOutputs,
    is_managed_cluster,
)
from identity.yaml_text import dump
from ops.outputs import hypershift_commands as commands
from ops.outputs.hypershift_commands import CliCommand
from ops.stack.errors import CommandError

# Flags of the files, and the files' names.
_MANAGED: Final = ("--managed-identities-file", "managed-identities.json")
_DATA_PLANE: Final = ("--data-plane-identities-file", "data-plane-identities.json")
_WORKLOAD: Final = ("--workload-identities-file", "workload-identities.json")
_INFRA: Final = ("--infra-json", "infra.json")
_MANIFEST: Final = "hosted-cluster.yaml"
# The fields of `spec` that a HostedCluster needs and the stack may not know.
_TO_ADD: Final = {
    "release": "spec.release.image",
    "pullSecret": "spec.pullSecret.name",
    "serviceAccountSigningKey": "spec.serviceAccountSigningKey.name",
}

# `ObjectEncoding` in cmd/cluster/azure/create.go:32, which overwrites that of a file (:387-395).
_ENCODING: Final = "utf-8"
# Key of the only private access that the CLI supports.
_PRIVATE_LINK: Final = "privateLink"
# The default of the API; the CLI writes none.
_CLOUD: Final = "AzurePublicCloud"


@dataclass(frozen=True)
class HostedClusterExport:
    """One hosted cluster for the CLI: its files by their flags, and the arguments of `create`."""

    name: str
    described: HostedClusterOutput[str]
    directory: Path

    @property
    def files(self) -> dict[str, tuple[Path, Mapping[str, Any]]]:
        """Path and content by flag; without the zones of the cluster there is no `--infra-json`."""
        contents = self._identity_files()
        if not self._unknown_domains():
            contents.append((_INFRA, self._infra()))
        return {flag: (self._path(file), content) for (flag, file), content in contents}

    @property
    def manifest(self) -> tuple[Path, str] | None:
        """Path and YAML of the whole HostedCluster; None without its zones and its services."""
        if self._unknown_domains() or not self._services:
            return None
        base = self._base
        document = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": self.name, "namespace": self.described["namespace"], **base["metadata"]},
            "spec": {**base["spec"], **self._spec},
        }
        to_add = [place for field, place in _TO_ADD.items() if field not in document["spec"]]
        notes = f"# Add {', '.join(to_add)}.\n" if to_add else ""
        return self._path(_MANIFEST), notes + dump(document)

    @property
    def create(self) -> CliCommand:
        """`hypershift create cluster azure`, which creates the missing infrastructure."""
        azure, files = self._azure, self.files
        return commands.create(
            {
                "--name": self.name,
                "--namespace": self.described["namespace"],
                "--infra-id": self._spec["infraID"],
                "--location": azure["location"],
                "--resource-group-name": azure["resourceGroup"],
                "--vnet-id": azure["vnetID"],
                "--subnet-id": azure["subnetID"],
                "--network-security-group-id": azure["securityGroupID"],
                **({"--dns-zone-rg-name": group} if (group := self.described.get("dnsZoneResourceGroup")) else {}),
                **{flag: str(files[flag][0]) for (flag, _), _ in self._identity_files()},
                **self._common,
            },
            has_host_names=self._has_host_names,
        )

    @property
    def render(self) -> CliCommand | None:
        """`hypershift create cluster azure --render` with the exported infrastructure; None without it."""
        flag, _ = _INFRA
        if flag not in self.files:
            return None
        cluster = {"--name": self.name, "--namespace": self.described["namespace"], flag: str(self.files[flag][0])}
        return commands.render(cluster | self._common, has_host_names=self._has_host_names)

    @property
    def _has_host_names(self) -> bool:
        """Whether the services have host names in an external domain, known to the stack or not."""
        return self._external_domain is not None or not self._services

    @property
    def paths(self) -> list[Path]:
        """The files of `write`, in its order."""
        return [*(path for path, _ in self.files.values()), *([self.manifest[0]] if self.manifest else [])]

    @property
    def is_applied(self) -> bool:
        """Whether the stack applies the HostedCluster: only then does it know the release, which the API requires."""
        return "release" in self._base["spec"]

    def write(self) -> None:
        """Write the files, which have no secrets; raises OSError."""
        texts = [(path, json.dumps(content, indent=2) + "\n") for path, content in self.files.values()]
        for path, text in (*texts, *([self.manifest] if self.manifest else [])):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def left_out(self) -> Iterator[str]:
        """The files that are left out, and the configuration keys that they need."""
        unknown = self._unknown_domains()
        if unknown:
            yield f"{self._path(_INFRA[1])} is left out: it needs {', '.join(unknown)}"
        if self._external_domain is None and not self._services:
            unknown.append("externalDnsDomain")
        if unknown:
            yield f"{self._path(_MANIFEST)} is left out: it needs {', '.join(unknown)}"

    def remarks(self) -> Iterator[str]:
        """Settings that HyperShift's API accepts for this cluster and then ignores (decision record 0016)."""
        if self.is_managed and _PRIVATE_LINK in (self._azure.get("private") or {}):
            yield (
                f"{self.name}: HyperShift creates no Private Link Service with --managed-service ARO-HCP, so that the "
                "nodes reach no API server: managed clusters need private.type Swift"
            )

    def obstacles(self) -> Iterator[str]:
        """Why the CLI cannot create this cluster: it overwrites these values with its own."""
        if "." in self.name:
            yield "it accepts no name with a dot"
        if self.is_managed:
            yield from self._obstacles_of_credentials()
        kms = self._kms
        private = self._azure.get("private")
        if private is not None and _PRIVATE_LINK not in private:
            yield f"it supports private access by PrivateLink only, but this cluster uses {private['type']}"
        if kms is not None and kms.get("keyVaultAccess") == "Private":
            yield "it leaves out keyVaultAccess, which means Public, but this cluster's is Private"
        if "containerRegistry" in self._azure:
            yield "it leaves out the managed identity with which the nodes pull images"
        if self._azure["cloud"] != _CLOUD:
            yield f"it leaves out the cloud, which means {_CLOUD}, but this cluster is in {self._azure['cloud']}"

    def _obstacles_of_credentials(self) -> Iterator[str]:
        control_plane = self._identities["controlPlane"]
        encodings = {identity["objectEncoding"] for identity in control_plane.values() if "objectEncoding" in identity}
        if self._kms is not None:
            encodings.add(self._kms["kms"]["objectEncoding"])
        for encoding in sorted(encodings - {_ENCODING}):
            yield f"it writes the encoding {_ENCODING} for every secret, but these are stored as {encoding}"
        for row in CONTROL_PLANE:
            if row.optional and row.hosted_cluster_path is not None and row.field not in control_plane:
                yield f"it writes {row.field} with an empty secret name, which the API refuses"

    @property
    def is_managed(self) -> bool:
        """Whether it signs in with certificates in a vault, under HyperShift as a managed service."""
        return is_managed_cluster(self.described)

    def _identity_files(self) -> list[tuple[tuple[str, str], Mapping[str, Any]]]:
        """Flag and name, and content, of each identity file.

        `hypershift create iam azure` writes workload identities in the same form (`cmd/infra/azure/identities.go:361`).
        """
        if self.is_managed:
            return [(_MANAGED, self._identities["controlPlane"]), (_DATA_PLANE, self._identities["dataPlane"])]
        return [(_WORKLOAD, {**self._workload_identities, **self._kms_client_id()})]

    def _kms_client_id(self) -> dict[str, str]:
        kms = self._kms
        if kms is None:
            return {}
        return {"kmsClientID": (kms["kms"] if self.is_managed else kms["workloadIdentity"])["clientID"]}

    @property
    def _workload_identities(self) -> Mapping[str, Any]:
        return self._azure["azureAuthenticationConfig"]["workloadIdentities"]

    @property
    def _spec(self) -> HostedClusterSpec[str]:
        return self.described["hostedClusterSpec"]

    @property
    def _azure(self) -> AzurePlatformSpec[str]:
        return self._spec["platform"]["azure"]

    @property
    def _kms(self) -> KmsAzureSpec[str] | None:
        encryption = self._spec.get("secretEncryption")
        return None if encryption is None else encryption["kms"]["azure"]

    @property
    def _identities(self) -> ManagedIdentitiesSpec[str]:
        return self._azure["azureAuthenticationConfig"]["managedIdentities"]

    @property
    def _base(self) -> Mapping[str, Any]:
        """The stack's part of the HostedCluster without the identities."""
        return self.described["hostedClusterBase"]

    @property
    def _external_domain(self) -> str | None:
        return self.described.get("externalDnsDomain")

    @property
    def _services(self) -> Sequence[Any]:
        """The publishing of the control plane's services; empty without the external domain that they need."""
        services: Sequence[Any] = self._base["spec"].get("services", ())
        return services

    @property
    def _dns(self) -> Mapping[str, str]:
        dns: Mapping[str, str] = self._base["spec"].get("dns", {})
        return dns

    def _unknown_domains(self) -> list[str]:
        return [f"dns.{key}" for key in ("baseDomain", "publicZoneID", "privateZoneID") if key not in self._dns]

    @property
    def _common(self) -> dict[str, str]:
        """Flags of both `create` and `render`."""
        domains = commands.domain_arguments(self._external_domain, self._dns.get("baseDomain"))
        return {
            "--oidc-issuer-url": self._spec["issuerURL"],
            **self._endpoint_access(),
            **self._encryption(),
            **domains,
        }

    def _encryption(self) -> dict[str, str]:
        """The flags of KMS; without them the CLI makes an `aescbc` key itself (`cmd/cluster/core/create.go:1142`)."""
        kms = self._kms
        if kms is None:
            return {}
        key, cloud = kms["activeKey"], CLOUDS[self._azure["cloud"]]
        suffix = cloud.managed_hsm_suffix if "keyVaultType" in kms else cloud.vault_suffix
        secret = {"--kms-credentials-secret-name": kms["kms"]["credentialsSecretName"]} if self.is_managed else {}
        return {
            **secret,
            "--encryption-key-id": f"https://{key['keyVaultName']}.{suffix}/keys/{key['keyName']}/{key['keyVersion']}",
        }

    def _endpoint_access(self) -> dict[str, str]:
        """The flags of private access (`cmd/cluster/azure/create.go:110-115,397-410`)."""
        topology, private = self._azure.get("topology"), self._azure.get("private")
        if topology is None:
            return {}
        link = (private or {}).get(_PRIVATE_LINK) or {}
        flags = {
            "--endpoint-access": topology,
            "--endpoint-access-private-nat-subnet-id": link.get("natSubnetID"),
            "--endpoint-access-private-additional-allowed-subscriptions": ",".join(
                link.get("additionalAllowedSubscriptions") or ()
            ),
        }
        return {flag: value for flag, value in flags.items() if value}

    def _infra(self) -> dict[str, Any]:
        """As `hypershift create infra azure` writes it (CreateInfraOutput of `cmd/infra/azure/types.go:31`)."""
        azure = self._azure
        return {
            **self._dns,
            "region": azure["location"],
            "resourceGroupName": azure["resourceGroup"],
            "vnetID": azure["vnetID"],
            "subnetID": azure["subnetID"],
            "infraID": self._spec["infraID"],
            "securityGroupID": azure["securityGroupID"],
            **self._infra_identities(),
            **self._kms_client_id(),
        }

    def _infra_identities(self) -> dict[str, Any]:
        if not self.is_managed:
            return {"workloadIdentities": self._workload_identities}
        return {
            "controlPlaneMIs": {"controlPlane": self._identities["controlPlane"]},
            "dataPlaneIdentities": self._identities["dataPlane"],
        }

    def _path(self, file: str) -> Path:
        return self.directory / self.name / file


def hosted_clusters(outputs: StackOutputs[str], directory: Path) -> dict[str, HostedClusterExport]:
    """The stack's hosted clusters by name; the files of each are in a folder of its name below `directory`."""
    return {
        name: HostedClusterExport(name, described, directory)
        for name, described in outputs.get("hostedClusters", {}).items()
    }


# The meaning of each variable of the commands; the script prints it for a missing one.
FILES: Final = {
    "AZURE_CREDS": "file with the credentials with which the CLI calls Azure",
    "EXTERNAL_DNS_SERVICE_PRINCIPAL_FILEPATH": "file with the credentials of external DNS (setup_external_dns.sh)",
    "PULL_SECRET": "file with the pull secret of OpenShift",
    "SA_TOKEN_ISSUER_PRIVATE_KEY_PATH": "file with the key whose public half the issuer of the cluster publishes",
}
VALUES: Final = {
    "HYPERSHIFT_IMAGE": "image of the operator of HyperShift",
    "MARKETPLACE_SKU": "SKU of the image of the nodes in the marketplace",
    "MARKETPLACE_VERSION": "version of the image of the nodes in the marketplace",
    "MGMT_DNS_ZONE_NAME": "domain of the host names of the control planes",
    "PARENT_DNS_ZONE": "base domain of the hosted cluster",
    "RELEASE_IMAGE": "image of the OpenShift release",
}
_PROGRAMS: Final = ("kubectl", "hypershift")
_AVAILABLE: Final = "kubectl --namespace hypershift rollout status deployment/operator --timeout=10m"


def install_script(stack: str, outputs: StackOutputs[str], clusters: Sequence[HostedClusterExport]) -> str:
    """The text of the script. It checks every variable, file and program before its first change.

    It does not create a HostedCluster that the stack applies. Raises CommandError for clusters with both kinds of
    sign-in, because the HyperShift of a management cluster has one.
    """
    kinds = {cluster.is_managed for cluster in clusters}
    if len(kinds) > 1:
        listed = ", ".join(
            f"{cluster.name} by {'certificates' if cluster.is_managed else 'tokens'}" for cluster in clusters
        )
        raise CommandError(
            f"one script installs HyperShift for one kind of sign-in, but the clusters have two: {listed}. Write a "
            "script for each kind with --cluster, for separate management clusters"
        )
    install = commands.install(outputs, is_managed=kinds == {True})
    created = [cluster for cluster in clusters if not cluster.is_applied]
    applied = [cluster for cluster in clusters if cluster.is_applied]
    creations = [cluster.create for cluster in created]
    variables = sorted({name for command in (install, *creations) for name in command.variables})
    texts = FILES | VALUES
    read = [f'"${name}"' for name in variables if name in FILES]
    read += [shlex.quote(str(path)) for cluster in created for path, _ in cluster.files.values()]
    parts = [
        f"#!/bin/sh\n# Written by `idstack export hypershift --stack {stack}`. "
        "It needs the kubeconfig of the management cluster.\nset -eu",
        "\n".join(f': "${{{name}:?{texts[name]}}}"' for name in variables),
        _loop("file", read, '[ -r "$file" ]', "cannot be read"),
        _loop("program", _PROGRAMS, 'command -v "$program" >/dev/null', "is not on PATH"),
        commands.definitions(),
        str(install),
        _AVAILABLE,
        *map(str, creations),
        *(f"# {cluster.name}: the stack applies its HostedCluster (`make up STACK={stack}`)." for cluster in applied),
    ]
    return "\n\n".join(parts) + "\n"


def _loop(name: str, words: Sequence[str], condition: str, problem: str) -> str:
    lines = " \\\n  ".join(words)
    return f'for {name} in {lines}; do\n  {condition} || {{ echo "${name} {problem}" >&2; exit 1; }}\ndone'
