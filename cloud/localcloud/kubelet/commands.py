"""A container's command line and environment, adapted to this machine."""

from __future__ import annotations

import base64
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from localcloud.kubelet.client import CONFIG_MAPS, SECRETS
from localcloud.kubelet.cluster import ClusterCache
from localcloud.kubelet.selection import field_at
from localcloud.kubernetes.calls import Object
from localcloud.kubernetes.pod_output import MOUNT_ROOT_VARIABLE, localiser

_PATH: Final = f"{Path(sys.prefix) / 'bin'}:/usr/local/bin:/usr/bin:/bin"
_REFERENCE: Final = re.compile(r"\$(\$|\(([-._a-zA-Z][-._a-zA-Z0-9]*)\))")
# What a quantity's suffix stands for (apimachinery `pkg/api/resource/suffix.go`).
_SUFFIXES: Final = {
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate(("n", "u", "m", "", *"kMGTPE"), -3)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
}
# A container without a limit has what the node has.
_CAPACITY: Final = {
    "cpu": str(os.cpu_count()),
    "memory": str(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
}


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
        return self._named(Path(command).name) if command.startswith("/") else None

    def entry_point(self, image: str) -> str | None:
        """The program with the name of an image, such as `agent` of `example.com/team/agent:v1`, None without one."""
        return self._named(re.split("[:@]", image.rpartition("/")[2])[0])

    def _named(self, name: str) -> str | None:
        if self.programs is None or not (path := self.programs / name).is_file():
            return None
        return str(path)


@dataclass(frozen=True)
class ContainerCommand:
    """Program and arguments of a container, its whole environment, and where it runs."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: Path


async def build(
    pod: Object, container: dict[str, Any], tree: Path, machine: Machine, cluster: ClusterCache
) -> ContainerCommand:
    """The command of a container.

    Absolute paths under the container's mounts are pointed at `tree`, in arguments and variables alike; so a document
    that names such a path itself (a cloud config) needs the variable PROBE_MOUNT_ROOT, which holds the tree. A
    container without a command runs what stands for the entry point of its image.

    Raises:
        ConfigError: no program, an unknown field reference, a missing Secret, ConfigMap or key.
        ApiError, httpx.HTTPError: the API server fails to return a Secret or ConfigMap.
    """
    paths = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
    local = localiser(paths, tree)
    declared = await _declared(pod, container, cluster)
    words = [*container.get("command", []), *container.get("args", [])]
    if not container.get("command"):
        if (entry_point := machine.entry_point(container.get("image", ""))) is None:
            raise ConfigError(
                "the container has no command: images are not pulled on a local node, so there is no entry point"
            )
        words = [entry_point, *words]
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
    asked = container.get("workingDir", "")
    return ContainerCommand(
        [machine.program(program) or local(program), *map(local, arguments)],
        environment,
        # Outside of the mounts, what the image would hold.
        Path.cwd() if local(asked) == asked else Path(local(asked)),
    )


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
            await _referred(pod, container, variable["valueFrom"], cluster)
            if "valueFrom" in variable
            else variable.get("value", "")
        )
        if value is not None:
            # A variable may use those declared before it.
            declared[variable["name"]] = expand(value, declared) if "valueFrom" not in variable else value
    return declared


async def _referred(
    pod: Object, container: dict[str, Any], source: dict[str, Any], cluster: ClusterCache
) -> str | None:
    namespace = pod["metadata"]["namespace"]
    if reference := source.get("fieldRef"):
        value = field_at(pod, reference["fieldPath"])
        if value is None:
            raise ConfigError(f"field reference {reference['fieldPath']}: the pod has no such string field")
        return value
    if reference := source.get("resourceFieldRef"):
        return _resource(pod, reference.get("containerName") or container["name"], reference)
    if reference := source.get("secretKeyRef"):
        document = await cluster.find(SECRETS, namespace, reference.get("name", ""))
        encoded = _key(document, "secret", namespace, reference)
        return None if encoded is None else base64.b64decode(encoded).decode()
    if reference := source.get("configMapKeyRef"):
        document = await cluster.find(CONFIG_MAPS, namespace, reference.get("name", ""))
        return _key(document, "configmap", namespace, reference)
    raise ConfigError(f"the local kubelet has no variables from {', '.join(source)}")


def _resource(pod: Object, name: str, reference: Mapping[str, Any]) -> str:
    """A request or limit of the container in units of the divisor, rounded up (`pkg/api/v1/resource/helpers.go`)."""
    every = {each["name"]: each for each in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])}
    if name not in every:
        raise ConfigError(f"container {name} not found")
    kind, _, resource = reference["resource"].partition(".")
    missing = _CAPACITY.get(resource, "0") if kind == "limits" else "0"
    value = every[name].get("resources", {}).get(kind, {}).get(resource, missing)
    return str(math.ceil(_quantity(value) / (_quantity(reference.get("divisor", "1")) or 1)))


def _quantity(value: str | float) -> Decimal:
    number = str(value).rstrip("".join(_SUFFIXES))
    return Decimal(number) * _SUFFIXES[str(value)[len(number) :]]


def _key(document: Object | None, kind: str, namespace: str, reference: Mapping[str, Any]) -> str | None:
    value: str | None = None if document is None else document.get("data", {}).get(reference["key"])
    if value is not None or reference.get("optional"):
        return value
    if document is None:
        raise ConfigError(f'{kind} "{reference.get("name", "")}" not found')
    raise ConfigError(f"couldn't find key {reference['key']} in {kind} {namespace}/{reference.get('name', '')}")
