"""A hosted cluster's outputs for HyperShift's CLI: files, and its commands for a shell with the scripts' variables.

Sources inside openshift/hypershift at 3ee9615. Files: `cmd/infra/azure/create.go` (:237-290) reads the identity files
as the structs ControlPlaneManagedIdentities, DataPlaneManagedIdentities and AzureWorkloadIdentities of
`api/hypershift/v1beta1/azure.go`, `cmd/cluster/azure/create.go:323-334` the infrastructure. Flags:
`contrib/managed-azure/setup_install_ho_on_aks.sh`, `contrib/managed-azure/create_basic_hosted_cluster.sh`,
`contrib/self-managed-azure/setup_hypershift_operator.sh`, and `cmd/install/install.go:443-520`,
`cmd/cluster/core/create.go:68-119`, `cmd/cluster/azure/create.go:83-115`, `cmd/nodepool/azure/create.go:73-76`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from identity import yaml_text
from identity.catalogue import CONTROL_PLANE
from identity.clouds import CLOUDS
from identity.hypershift import API_VERSION, KIND, POD_SECURITY
from identity.outputs import HostedClusterOutput, StackOutputs, is_managed_cluster
from ops.stack.errors import CommandError, message

# Flags of the files, and the files' names.
_MANAGED: Final = ("--managed-identities-file", "managed-identities.json")
_DATA_PLANE: Final = ("--data-plane-identities-file", "data-plane-identities.json")
_WORKLOAD: Final = ("--workload-identities-file", "workload-identities.json")
_INFRA: Final = ("--infra-json", "infra.json")
_MANIFEST: Final = "hosted-cluster.yaml"
# `ObjectEncoding` in cmd/cluster/azure/create.go:32, which overwrites that of a file (:387-395).
_ENCODING: Final = "utf-8"
# Key of the only private access that the CLI supports.
_PRIVATE_LINK: Final = "privateLink"
# The default of the API; the CLI writes none.
_CLOUD: Final = "AzurePublicCloud"


_TABLES: Final[dict[str, Any]] = yaml_text.load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
DEFINITIONS: Final[Sequence[str]] = _TABLES["definitions"]
_EXTERNAL_DOMAIN: Final = "--external-dns-domain"
# The variable of each flag whose value the stack does not know.
_OF_A_CLUSTER: Final[Mapping[str, str]] = _TABLES["cluster"]


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
        lines += [f'{flag} "${variable}"' for flag, variable in self.missing.items()]
        return " \\\n  ".join(lines)

    @property
    def missing(self) -> dict[str, str]:
        """The variables by flag."""
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
    domains = {cluster.get("externalDnsZone", cluster.get("externalDnsDomain")) for cluster in clusters}
    managed_service = (
        ["--managed-service", "ARO-HCP", "--aro-hcp-key-vault-users-client-id", outputs["keyVaultUserClientId"]]
        if is_managed
        else []
    )
    has_private_link = not is_managed and any(map(_is_reached_by_private_link, clusters))
    arguments = [
        "--enable-conversion-webhook=false",
        *("--external-dns-provider", "azure"),
        *managed_service,
        *("--limit-crd-install", "Azure"),
        *(("--private-platform", "Azure") if has_private_link else ()),
    ]
    # External DNS takes one filter: the zone of all clusters, if they share it. It finds no zone above its filter.
    if len(domains) == 1 and (domain := domains.pop()) is not None:
        arguments += ["--external-dns-domain-filter", domain]
    return CliCommand(
        "hypershift install", arguments, _TABLES["install"] | (_TABLES["privateLink"] if has_private_link else {})
    )


def _is_reached_by_private_link(cluster: HostedClusterOutput[str]) -> bool:
    """Whether the nodes of a hosted cluster reach its API server by a Private Link Service."""
    return _PRIVATE_LINK in (cluster["hostedClusterSpec"]["platform"]["azure"].get("private") or {})


class HostedClusterExport:
    """One hosted cluster for the CLI: its files by their flags, and the arguments of `create`."""

    def __init__(self, name: str, described: HostedClusterOutput[str], directory: Path) -> None:
        self.name = name
        self.is_managed = is_managed_cluster(described)
        self._described = described
        self._directory = directory / name
        self._spec: Mapping[str, Any] = described["hostedClusterSpec"]
        self._azure: Mapping[str, Any] = self._spec["platform"]["azure"]
        authentication = self._azure["azureAuthenticationConfig"]
        self._identities = authentication["managedIdentities" if self.is_managed else "workloadIdentities"]
        self._kms = self._spec["secretEncryption"]["kms"]["azure"] if "secretEncryption" in self._spec else None
        # The stack's part of the HostedCluster without the identities.
        self._base: Mapping[str, Any] = described["hostedClusterBase"]
        # Empty without the external domain that the services need.
        self._services: Sequence[Any] = self._base["spec"].get("services", ())
        self._dns: Mapping[str, str] = self._base["spec"].get("dns", {})
        self._external_domain = described.get("externalDnsDomain")

    @property
    def files(self) -> dict[str, tuple[Path, Mapping[str, Any]]]:
        """Path and content by flag; without the zones of the cluster there is no `--infra-json`."""
        contents = self._identity_files()
        if not self._unknown_domains():
            contents.append((_INFRA, self._infra()))
        return {flag: (self._directory / file, content) for (flag, file), content in contents}

    @property
    def manifest(self) -> tuple[Path, str] | None:
        """Path and YAML of the whole HostedCluster; None without its zones and its services."""
        if self._unknown_domains() or not self._services:
            return None
        base = self._base
        document = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": self.name, "namespace": self._described["namespace"], **base["metadata"]},
            "spec": {**base["spec"], **self._spec},
        }
        to_add = [place for field, place in _TABLES["toAdd"].items() if field not in document["spec"]]
        notes = f"# Add {', '.join(to_add)}.\n" if to_add else ""
        return self._directory / _MANIFEST, notes + yaml_text.dump(document)

    @property
    def create(self) -> CliCommand:
        """`hypershift create cluster azure`, which creates the missing infrastructure."""
        files = self.files
        flags = {
            **{flag: self._infrastructure[key] for flag, key in _TABLES["infrastructure"].items()},
            "--dns-zone-rg-name": self._described.get("dnsZoneResourceGroup"),
            **{flag: str(files[flag][0]) for (flag, _), _ in self._identity_files()},
        }
        return self._command(flags, _TABLES["fixed"], "--generate-ssh", _OF_A_CLUSTER)

    @property
    def render(self) -> CliCommand | None:
        """`hypershift create cluster azure --render`, which calls neither Azure nor Kubernetes, with the exported
        infrastructure; None without it.
        """
        flag, _ = _INFRA
        if flag not in self.files:
            return None
        own = {flag: variable for flag, variable in _OF_A_CLUSTER.items() if not flag.startswith("--marketplace")}
        return self._command({flag: str(self.files[flag][0])}, {}, "--render", own)

    def _command(
        self, flags: Mapping[str, str | None], fixed: Mapping[str, str], last: str, own: Mapping[str, str]
    ) -> CliCommand:
        every = {
            "--name": self.name,
            "--namespace": self._described["namespace"],
            **flags,
            "--oidc-issuer-url": self._spec["issuerURL"],
            **self._endpoint_access(),
            **self._encryption(),
            _EXTERNAL_DOMAIN: self._external_domain,
            "--base-domain": self._dns.get("baseDomain"),
            "--annotations": "=".join(POD_SECURITY),  # create_basic_hosted_cluster.sh:61
            **fixed,
        }
        if self._external_domain is None and self._services:
            # The services have no host names.
            own = {flag: variable for flag, variable in own.items() if flag != _EXTERNAL_DOMAIN}
        words = [word for flag, value in every.items() if value is not None for word in (flag, value)]
        return CliCommand("hypershift create cluster azure", [*words, last], own)

    @property
    def texts(self) -> dict[Path, str]:
        """The text of every file; none has a secret."""
        texts = {path: json.dumps(content, indent=2) + "\n" for path, content in self.files.values()}
        return texts if (manifest := self.manifest) is None else texts | dict([manifest])

    @property
    def is_applied(self) -> bool:
        """Whether the stack applies the HostedCluster: only then does it know the release, which the API requires."""
        return "release" in self._base["spec"]

    def write(self) -> None:
        """Write the files; raises OSError."""
        for path, text in self.texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def left_out(self) -> Iterator[str]:
        """The files that are left out, and the configuration keys that they need."""
        unknown = self._unknown_domains()
        if unknown:
            yield f"{self._directory / _INFRA[1]} is left out: it needs {', '.join(unknown)}"
        if self._external_domain is None and not self._services:
            unknown.append("externalDnsDomain")
        if unknown:
            yield f"{self._directory / _MANIFEST} is left out: it needs {', '.join(unknown)}"

    def remarks(self) -> Iterator[str]:
        """Settings that HyperShift's API accepts for this cluster and then ignores (decision record 0016)."""
        if _is_reached_by_private_link(self._described):
            yield message(
                "hypershift.private-link-of-managed" if self.is_managed else "hypershift.private-link-on-aks",
                cluster=self.name,
            )

    def obstacles(self) -> Iterator[str]:
        """Why the CLI cannot create this cluster: it overwrites these values with its own."""
        if "." in self.name:
            yield "it accepts no name with a dot"
        if self.is_managed:
            control_plane = self._identities["controlPlane"]
            encodings = {one["objectEncoding"] for one in control_plane.values() if "objectEncoding" in one}
            if self._kms is not None:
                encodings.add(self._kms["kms"]["objectEncoding"])
            for encoding in sorted(encodings - {_ENCODING}):
                yield f"it writes the encoding {_ENCODING} for every secret, but these are stored as {encoding}"
            for row in CONTROL_PLANE:
                if row.optional and row.hosted_cluster_path is not None and row.field not in control_plane:
                    yield f"it writes {row.field} with an empty secret name, which the API refuses"
        private = self._azure.get("private")
        if private is not None and _PRIVATE_LINK not in private:
            yield f"it supports private access by PrivateLink only, but this cluster uses {private['type']}"
        if self._kms is not None and self._kms.get("keyVaultAccess") == "Private":
            yield "it leaves out keyVaultAccess, which means Public, but this cluster's is Private"
        if "containerRegistry" in self._azure:
            yield "it leaves out the managed identity with which the nodes pull images"
        if self._azure["cloud"] != _CLOUD:
            yield f"it leaves out the cloud, which means {_CLOUD}, but this cluster is in {self._azure['cloud']}"

    def _identity_files(self) -> list[tuple[tuple[str, str], Mapping[str, Any]]]:
        """Flag and name, and content, of each identity file.

        `hypershift create iam azure` writes workload identities in the same form (`cmd/infra/azure/identities.go:361`).
        """
        if self.is_managed:
            return [(_MANAGED, self._identities["controlPlane"]), (_DATA_PLANE, self._identities["dataPlane"])]
        return [(_WORKLOAD, {**self._identities, **self._kms_client_id()})]

    def _kms_client_id(self) -> dict[str, str]:
        if (kms := self._kms) is None:
            return {}
        return {"kmsClientID": (kms["kms"] if self.is_managed else kms["workloadIdentity"])["clientID"]}

    @property
    def _infrastructure(self) -> dict[str, str]:
        azure = self._azure
        return {
            "region": azure["location"],
            "resourceGroupName": azure["resourceGroup"],
            "vnetID": azure["vnetID"],
            "subnetID": azure["subnetID"],
            "infraID": self._spec["infraID"],
            "securityGroupID": azure["securityGroupID"],
        }

    def _unknown_domains(self) -> list[str]:
        return [f"dns.{key}" for key in ("baseDomain", "publicZoneID", "privateZoneID") if key not in self._dns]

    def _encryption(self) -> dict[str, str | None]:
        """The flags of KMS; without them the CLI makes an `aescbc` key itself (`cmd/cluster/core/create.go:1142`)."""
        if (kms := self._kms) is None:
            return {}
        key, cloud = kms["activeKey"], CLOUDS[self._azure["cloud"]]
        suffix = cloud.managed_hsm_suffix if "keyVaultType" in kms else cloud.vault_suffix
        return {
            "--kms-credentials-secret-name": kms["kms"]["credentialsSecretName"] if self.is_managed else None,
            "--encryption-key-id": f"https://{key['keyVaultName']}.{suffix}/keys/{key['keyName']}/{key['keyVersion']}",
        }

    def _endpoint_access(self) -> dict[str, str | None]:
        """The flags of private access (`cmd/cluster/azure/create.go:110-115,397-410`)."""
        topology, private = self._azure.get("topology"), self._azure.get("private")
        if topology is None:
            return {}
        link = (private or {}).get(_PRIVATE_LINK) or {}
        subscriptions = ",".join(link.get("additionalAllowedSubscriptions") or ()) or None
        return {
            "--endpoint-access": topology,
            "--endpoint-access-private-nat-subnet-id": link.get("natSubnetID"),
            "--endpoint-access-private-additional-allowed-subscriptions": subscriptions,
        }

    def _infra(self) -> dict[str, Any]:
        """As `hypershift create infra azure` writes it (CreateInfraOutput of `cmd/infra/azure/types.go:31`)."""
        identities = (
            {
                "controlPlaneMIs": {"controlPlane": self._identities["controlPlane"]},
                "dataPlaneIdentities": self._identities["dataPlane"],
            }
            if self.is_managed
            else {"workloadIdentities": self._identities}
        )
        return {**self._dns, **self._infrastructure, **identities, **self._kms_client_id()}


FILES: Final[dict[str, str]] = _TABLES["files"]
VALUES: Final[dict[str, str]] = _TABLES["values"]


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
        raise CommandError(message("hypershift.two-kinds", clusters=listed))
    installation = install(outputs, is_managed=kinds == {True})
    created = [cluster for cluster in clusters if not cluster.is_applied]
    creations = [cluster.create for cluster in created]
    variables = sorted({name for command in (installation, *creations) for name in command.missing.values()})
    texts = {**FILES, **VALUES}
    read = [f'"${name}"' for name in variables if name in FILES]
    read += [shlex.quote(str(path)) for cluster in created for path, _ in cluster.files.values()]
    applied = [
        f"# {cluster.name}: the HostedCluster is applied by `.venv/bin/idstack up --stack {stack}`."
        for cluster in clusters
        if cluster.is_applied
    ]
    script: str = _TABLES["script"].format(
        stack=stack,
        variables="\n".join(f': "${{{name}:?{texts[name]}}}"' for name in variables),
        files=" \\\n  ".join(read),
        definitions=definitions(),
        installation=installation,
        clusters="\n\n".join([*map(str, creations), *applied]),
    )
    return script
