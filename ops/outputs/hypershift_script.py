"""One shell script that installs HyperShift's operator and creates the hosted clusters, in the right order.

Sources inside openshift/hypershift at 3ee9615: `contrib/managed-azure/setup_all.sh` has the order; namespace and name
of the operator's Deployment are in `cmd/install/assets/hypershift_operator.go`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from identity.outputs import StackOutputs
from ops.outputs import hypershift_commands as commands
from ops.outputs.hypershift import HostedClusterExport
from ops.stack.errors import CommandError

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


def script(stack: str, outputs: StackOutputs[str], clusters: Sequence[HostedClusterExport]) -> str:
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
