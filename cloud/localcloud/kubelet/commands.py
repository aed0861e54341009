"""A container's command line and environment, adapted to this machine."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from localcloud.kubelet.cluster import ClusterCache
from localcloud.kubelet.selection import field_at
from localcloud.kubernetes.calls import Object
from localcloud.kubernetes.pod_output import MOUNT_ROOT_VARIABLE, localiser

_PATH: Final = f"{Path(sys.prefix) / 'bin'}:/usr/local/bin:/usr/bin:/bin"
_REFERENCE: Final = re.compile(r"\$(\$|\(([-._a-zA-Z][-._a-zA-Z0-9]*)\))")


class ConfigError(Exception):
    """A container that cannot be configured; the message is the kubelet's (reason CreateContainerConfigError)."""


@dataclass(frozen=True)
class Machine:
    """The common environment of all containers on this machine.

    Attributes:
        ca_file: the authority of the local cloud's certificates.
        api_server: URL of the Kubernetes API, which a pod of Kubernetes knows by two variables.
        programs: a folder with the programs that images hold, None if there is none.
    """

    ca_file: str
    api_server: str
    programs: Path | None = None

    def program(self, command: str) -> str | None:
        """The program with the name of an absolute path, None if there is none."""
        if self.programs is None or not command.startswith("/"):
            return None
        path = self.programs / Path(command).name
        return str(path) if path.exists() else None


@dataclass(frozen=True)
class ContainerCommand:
    """Program and arguments of a container, and its whole environment."""

    arguments: Sequence[str]
    environment: Mapping[str, str]


async def build(
    pod: Object, container: dict[str, Any], tree: Path, machine: Machine, cluster: ClusterCache
) -> ContainerCommand:
    """The command of a container.

    Absolute paths under the container's mounts are pointed at `tree`, in arguments and variables alike; so a document
    that names such a path itself (a cloud config) needs the variable PROBE_MOUNT_ROOT, which holds the tree.

    Raises:
        ConfigError: no command, an unknown field reference, a missing Secret, ConfigMap or key.
        ApiError, httpx.HTTPError: the API server fails to return a Secret or ConfigMap.
    """
    paths = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
    local = localiser(paths, tree)
    declared = await _declared(pod, container, cluster)
    words = [*container.get("command", []), *container.get("args", [])]
    if not container.get("command"):
        raise ConfigError(
            "the container has no command: images are not pulled on a local node, so there is no entry point"
        )
    api_server = urlsplit(machine.api_server)
    environment = {
        "PATH": _PATH,
        "HOME": str(tree),
        "LANG": "C.UTF-8",
        "HOSTNAME": pod["metadata"]["name"],
        "REQUESTS_CA_BUNDLE": machine.ca_file,
        "SSL_CERT_FILE": machine.ca_file,
        "KUBERNETES_SERVICE_HOST": str(api_server.hostname),
        "KUBERNETES_SERVICE_PORT": str(api_server.port),
        MOUNT_ROOT_VARIABLE: str(tree),
        **{name: local(value) for name, value in declared.items()},
    }
    program, *arguments = [expand(word, declared) for word in words]
    return ContainerCommand([machine.program(program) or local(program), *map(local, arguments)], environment)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` by its value; unknown names stay, `$$` is a dollar (`third_party/forked/golang/expansion`)."""

    def value(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return variables.get(match[2], match[0])

    return _REFERENCE.sub(value, text)


async def _declared(pod: Object, container: dict[str, Any], cluster: ClusterCache) -> dict[str, str]:
    if "envFrom" in container:
        raise ConfigError("envFrom is not supported by the local kubelet; name the variables in env")
    declared: dict[str, str] = {}
    for variable in container.get("env", []):
        value = (
            await _referred(pod, variable["valueFrom"], cluster)
            if "valueFrom" in variable
            else variable.get("value", "")
        )
        if value is not None:
            # A variable may use those declared before it.
            declared[variable["name"]] = expand(value, declared) if "valueFrom" not in variable else value
    return declared


async def _referred(pod: Object, source: dict[str, Any], cluster: ClusterCache) -> str | None:
    namespace = pod["metadata"]["namespace"]
    if reference := source.get("fieldRef"):
        value = field_at(pod, reference["fieldPath"])
        if value is None:
            raise ConfigError(f"field reference {reference['fieldPath']}: the pod has no such string field")
        return value
    if reference := source.get("secretKeyRef"):
        document = await cluster.secret(namespace, reference.get("name", ""))
        encoded = _key(document, "secret", namespace, reference)
        return None if encoded is None else base64.b64decode(encoded).decode()
    if reference := source.get("configMapKeyRef"):
        document = await cluster.config_map(namespace, reference.get("name", ""))
        return _key(document, "configmap", namespace, reference)
    raise ConfigError(f"the local kubelet has no variables from {', '.join(source)}")


def _key(document: Object | None, kind: str, namespace: str, reference: Mapping[str, Any]) -> str | None:
    value: str | None = None if document is None else document.get("data", {}).get(reference["key"])
    if value is not None or reference.get("optional"):
        return value
    if document is None:
        raise ConfigError(f'{kind} "{reference.get("name", "")}" not found')
    raise ConfigError(f"couldn't find key {reference['key']} in {kind} {namespace}/{reference.get('name', '')}")
