"""The provider's inputs, and the refusal of every cluster that is not the local one.

An emulated plugin on PATH would serve any stack, and `refresh` and `destroy` never run the program: so the server of
the kubeconfig is compared with the local cloud's recorded ones in CheckConfig (`up`, `preview`) and again in Configure.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from localcloud.core.clouds import LOCAL_ENVIRONMENT_VARIABLE, LocalEnvironment
from localcloud.kubernetes.kubeconfig import Connection, cluster_entry, connection, servers
from plugin import UNKNOWN, PluginError, Props, unwrap

# enableServerSideApply and enablePatchForce matter for how a patch is sent: the emulated plugin's has no conflicts.
_INPUTS: Final = frozenset(
    {
        "kubeconfig",
        "context",
        "namespace",
        "clusterIdentifier",
        "enableServerSideApply",
        "enablePatchForce",
        "enableSecretMutable",
        "enableConfigMapMutable",
        "version",
        "pluginDownloadURL",
    }
)


@dataclass(frozen=True)
class KubernetesProviderSettings:
    """A configured provider: the cluster, the namespace of objects without one, what may change in place."""

    connection: Connection
    namespace: str
    is_secret_mutable: bool
    is_config_map_mutable: bool

    @classmethod
    def load(cls, inputs: Props, environ: Mapping[str, str] = os.environ) -> KubernetesProviderSettings | None:
        """The settings in the inputs, None while a preview does not know the cluster; PluginError for a refusal."""
        plain = unwrap(inputs)
        if UNKNOWN in (plain.get("kubeconfig"), plain.get("context")):
            return None
        if problem := refusal(inputs, environ):
            raise PluginError(problem)
        server = connection(plain["kubeconfig"], plain.get("context"))
        return cls(
            connection=server,
            namespace=plain.get("namespace") or server.namespace,
            is_secret_mutable=_flag(plain.get("enableSecretMutable")),
            is_config_map_mutable=_flag(plain.get("enableConfigMapMutable")),
        )


def refusal(inputs: Props, environ: Mapping[str, str] = os.environ) -> str | None:
    """Why this provider is not served and how to fix it; None if it is the local cluster's."""
    plain = unwrap(inputs)
    if unknown := sorted(name for name in plain if name not in _INPUTS):
        return (
            f"the emulated kubernetes plugin does not have the provider input {', '.join(unknown)}; "
            f"it has {', '.join(sorted(_INPUTS))}"
        )
    kubeconfig = plain.get("kubeconfig")
    if UNKNOWN in (kubeconfig, plain.get("context")):
        return None
    if not environ.get(LOCAL_ENVIRONMENT_VARIABLE):
        return (
            "the emulated kubernetes plugin does not know the local cluster, because the variable "
            f"{LOCAL_ENVIRONMENT_VARIABLE} is not set. Nothing was changed. Run through `make` (`make up`), or set it "
            "to the path of the local cloud's environment.json."
        )
    if not kubeconfig:
        return (
            "this provider names no kubeconfig, and the emulated kubernetes plugin takes none from the environment: it "
            "could be any cluster's. Nothing was changed. Give the provider the kubeconfig of the local cloud."
        )
    try:
        known = _recorded_servers(Path(environ[LOCAL_ENVIRONMENT_VARIABLE]))
        server = connection(kubeconfig, plain.get("context")).server
    except (OSError, ValueError) as error:
        return (
            f"the emulated kubernetes plugin cannot determine which cluster this provider is for: {error}. "
            "Nothing was changed."
        )
    if server in known:
        return None
    return (
        f"this provider is for the cluster at {server}, but the kubernetes plugin in this PULUMI_HOME is emulated and "
        f"serves only the local cloud's ({', '.join(sorted(known))}). Nothing was changed. For a stack on a real "
        "cluster run with a PULUMI_HOME of your own, so that the engine takes the real plugin (`make up STACK=<name>` "
        "does); for the local stack use the kubeconfig of `idstack local env --json`."
    )


def is_the_same_cluster(old: Props, new: Props) -> bool:
    """Whether everything that is there may stay where it is.

    The real provider's rule (pulumi-kubernetes 4.34 `provider/pkg/provider/provider.go`, DiffConfig): while
    `clusterIdentifier` stays it does; without one, or as it comes or goes, the cluster's entry in the kubeconfig
    decides with everything in it (server, authority, proxy), and one that a preview does not know is another one.
    """
    before, after = unwrap(old), unwrap(new)
    identifier = after.get("clusterIdentifier")
    if identifier and identifier == before.get("clusterIdentifier"):
        return True
    if UNKNOWN in (after.get("kubeconfig"), after.get("context")):
        return False
    return _cluster_entry(before) == _cluster_entry(after)


def _cluster_entry(inputs: Mapping[str, Any]) -> Mapping[str, Any] | None:
    try:
        return cluster_entry(str(inputs.get("kubeconfig", "")), inputs.get("context"))
    except ValueError:
        return None


def _recorded_servers(record: Path) -> frozenset[str]:
    environment = LocalEnvironment.from_file(record)
    return servers(Path(environment.kubeconfig).read_text(encoding="utf-8"))


def _flag(value: object) -> bool:
    # Provider inputs arrive as strings.
    return value is True or value == "true"
