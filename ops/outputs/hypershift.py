"""A stack's outputs as HyperShift's CLI takes them: files and flags.

Sources inside openshift/hypershift at 3ee9615. Flags: `cmd/install/install.go:500-508`,
`cmd/cluster/core/create.go:69-113`, `cmd/cluster/azure/create.go:73-108`. Files: `cmd/infra/azure/create.go:237-290`,
which reads those of identities as the structs ControlPlaneManagedIdentities and DataPlaneManagedIdentities of
`api/hypershift/v1beta1/azure.go`.
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
from identity.outputs import (
    AzurePlatformSpec,
    HostedClusterOutput,
    HostedClusterSpec,
    ManagedIdentitiesSpec,
    StackOutputs,
)

# What the stack does not know; the variables have the names of HyperShift's own scripts (`contrib/managed-azure`).
_INSTALL_OWN: Final = {"--hypershift-image": "HYPERSHIFT_IMAGE", "--pull-secret": "PULL_SECRET"}
_CREATE_OWN: Final = {
    "--azure-creds": "AZURE_CREDS",
    "--base-domain": "PARENT_DNS_ZONE",
    "--pull-secret": "PULL_SECRET",
    "--release-image": "RELEASE_IMAGE",
    "--sa-token-issuer-private-key-path": "SA_TOKEN_ISSUER_PRIVATE_KEY_PATH",
}
# Flags of the files, and the files' names; the workload identities are for self-managed clusters.
_MANAGED: Final = ("--managed-identities-file", "managed-identities.json")
_DATA_PLANE: Final = ("--data-plane-identities-file", "data-plane-identities.json")
WORKLOAD: Final = ("--workload-identities-file", "workload-identities.json")

# `ObjectEncoding` in cmd/cluster/azure/create.go:32, which overwrites that of a file (:387-395).
_ENCODING: Final = "utf-8"
# The default of the API; the CLI writes none.
_CLOUD: Final = "AzurePublicCloud"


@dataclass(frozen=True)
class HostedClusterExport:
    """One hosted cluster for the CLI: its files by the flag that takes each, and the arguments of `create`."""

    name: str
    described: HostedClusterOutput[str]
    directory: Path

    @property
    def files(self) -> dict[str, tuple[Path, Mapping[str, Any]]]:
        """Path and content by flag."""
        identities = self._identities
        contents = (
            (_MANAGED, identities["controlPlane"]),
            (_DATA_PLANE, identities["dataPlane"]),
            (WORKLOAD, self._workload_identities()),
        )
        return {flag: (self.directory / self.name / file, content) for (flag, file), content in contents}

    @property
    def create(self) -> list[str]:
        """Arguments of `hypershift create cluster azure`."""
        spec, azure, files = self._spec, self._azure, self.files
        kms = spec["secretEncryption"]["kms"]["azure"]
        key = kms["activeKey"]
        vault = f"https://{key['keyVaultName']}.{CLOUDS[azure['cloud']].vault_suffix}"
        return _arguments(
            {
                "--name": self.name,
                "--namespace": self.described["namespace"],
                "--infra-id": spec["infraID"],
                "--location": azure["location"],
                "--resource-group-name": azure["resourceGroup"],
                "--vnet-id": azure["vnetID"],
                "--subnet-id": azure["subnetID"],
                "--network-security-group-id": azure["securityGroupID"],
                "--oidc-issuer-url": spec["issuerURL"],
                **{flag: str(files[flag][0]) for flag, _ in (_MANAGED, _DATA_PLANE)},
                "--kms-credentials-secret-name": kms["kms"]["credentialsSecretName"],
                "--encryption-key-id": f"{vault}/keys/{key['keyName']}/{key['keyVersion']}",
            }
        )

    def write(self) -> None:
        """Write the files; raises OSError. Nothing in them is secret."""
        for path, content in self.files.values():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    def obstacles(self) -> Iterator[str]:
        """Why the CLI cannot create this cluster: it overwrites these values with its own."""
        control_plane = self._identities["controlPlane"]
        encodings = {each["objectEncoding"] for each in control_plane.values() if "objectEncoding" in each}
        for encoding in sorted(encodings - {_ENCODING}):
            yield f"it writes the encoding {_ENCODING} for every secret, but these are stored as {encoding}"
        for row in CONTROL_PLANE:
            if row.optional and row.field not in control_plane:
                yield f"it writes {row.field} with an empty secret name, which the API refuses"
        if self._azure["cloud"] != _CLOUD:
            yield f"it leaves the cloud out, which means {_CLOUD}, but this one is in {self._azure['cloud']}"

    @property
    def _spec(self) -> HostedClusterSpec[str]:
        return self.described["hostedClusterSpec"]

    @property
    def _azure(self) -> AzurePlatformSpec[str]:
        return self._spec["platform"]["azure"]

    @property
    def _identities(self) -> ManagedIdentitiesSpec[str]:
        return self._azure["azureAuthenticationConfig"]["managedIdentities"]

    def _workload_identities(self) -> dict[str, Any]:
        """As `hypershift create iam azure` writes them (`cmd/infra/azure/identities.go:360-365`)."""
        control_plane = self._identities["controlPlane"]
        kms = self._spec["secretEncryption"]["kms"]["azure"]["kms"]
        return {
            **{field: {"clientID": each["clientID"]} for field, each in control_plane.items() if "clientID" in each},
            "kmsClientID": kms["clientID"],
        }


def hosted_clusters(outputs: StackOutputs[str], directory: Path) -> dict[str, HostedClusterExport]:
    """The stack's hosted clusters by name; the files of each go into a folder of its name below `directory`."""
    return {
        name: HostedClusterExport(name, described, directory)
        for name, described in outputs.get("hostedClusters", {}).items()
    }


def install(outputs: StackOutputs[str]) -> list[str]:
    """Arguments of `hypershift install` on the management cluster."""
    return [
        *_arguments(
            {
                "--managed-service": "ARO-HCP",
                "--aro-hcp-key-vault-users-client-id": outputs["keyVaultUserClientId"],
            }
        ),
        # Managed identities are behind its feature gate.
        "--tech-preview-no-upgrade",
    ]


def install_command(arguments: Sequence[str]) -> str:
    """`hypershift install` with these arguments, for a shell in which the variables of HyperShift's scripts are set."""
    return _command("hypershift install", arguments, _INSTALL_OWN)


def create_command(arguments: Sequence[str]) -> str:
    """`hypershift create cluster azure` with these arguments, for the same shell as `install_command`."""
    return _command("hypershift create cluster azure", arguments, _CREATE_OWN)


def _arguments(values: Mapping[str, str]) -> list[str]:
    return [word for pair in values.items() for word in pair]


def _command(program: str, arguments: Sequence[str], own: Mapping[str, str]) -> str:
    lines = [program]
    for word in arguments:
        if word.startswith("--"):
            lines.append(word)
        else:
            lines[-1] += f" {shlex.quote(word)}"
    lines += [f'{flag} "${variable}"' for flag, variable in own.items()]
    return " \\\n  ".join(lines)
