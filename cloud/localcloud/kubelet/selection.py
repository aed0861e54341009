"""Fields of Kubernetes objects that several modules read."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from localcloud.kubernetes import kinds
from localcloud.kubernetes.calls import Object

# The pods' file trees: `<mounts>/<namespace>/<workload>` leads to the newest pod of the workload.
#
# Each pod has a tree of its own, `<mounts>/<namespace>/.<pod>`, so that two pods of a workload (replicas, a rollout) do
# not write into each other's files; the workload's name is a link.


HOSTS: Final = ".hosts"
"""A pod's hosts file in its tree: a container sees it at `/etc/hosts` if its program makes a root of the tree."""


def tree_of(mounts: Path, pod: Object) -> Path:
    """The pod's own tree. No Kubernetes name begins with a dot, so it differs from every workload's."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    return mounts / str(namespace) / f".{name}"


def link(mounts: Path, pod: Object) -> None:
    """Point the workload's name to this pod's tree, in one step."""
    tree = tree_of(mounts, pod)
    draft = tree.with_name(f"{tree.name}.link")
    draft.unlink(missing_ok=True)
    draft.symlink_to(tree.name)
    draft.replace(tree.with_name(workload_of(pod)))


def unlink(mounts: Path, pod: Object) -> None:
    """Remove the workload's link if it led to this pod, and the namespace's directory if nothing is left in it."""
    tree = tree_of(mounts, pod)
    place = tree.with_name(workload_of(pod))
    if place.is_symlink() and place.readlink() == Path(tree.name):
        place.unlink()
    with suppress(OSError):
        tree.parent.rmdir()


HASH_LABEL: Final = "pod-template-hash"
_SUBSCRIPT: Final = re.compile(r"(?P<path>metadata\.(labels|annotations))\['(?P<key>[^']+)'\]")


def field_at(document: Object, path: str) -> str | None:
    """The string at a downward API path (`status.podIP`, `metadata.labels['app']`), None if there is none."""
    if subscript := _SUBSCRIPT.fullmatch(path):
        value = (kinds.field_at(document, subscript["path"]) or {}).get(subscript["key"])
    else:
        value = kinds.field_at(document, path)
    return value if isinstance(value, str) else None


def condition(document: Object, type_: str) -> dict[str, Any]:
    """A status condition, empty if there is none."""
    conditions: list[dict[str, Any]] = document.get("status", {}).get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == type_), {})


def is_ready(pod: Object) -> bool:
    return condition(pod, "Ready").get("status") == "True"


def is_terminating(document: Object) -> bool:
    """Whether the object is being deleted: a finalizer, or for a pod its kubelet, has work left."""
    return "deletionTimestamp" in document["metadata"]


def controller_of(document: Object) -> dict[str, Any] | None:
    """The ownerReference with `controller: true`, None if there is none."""
    owners: list[dict[str, Any]] = document["metadata"].get("ownerReferences", [])
    return next((owner for owner in owners if owner.get("controller")), None)


def workload_of(pod: Object) -> str:
    """The name of the Deployment behind the ReplicaSet that owns the pod, else of the pod's owner, else its own."""
    metadata, owner = pod["metadata"], controller_of(pod)
    if owner is None:
        return str(metadata["name"])
    hash_ = metadata.get("labels", {}).get(HASH_LABEL, "")
    return str(owner["name"]).removesuffix(f"-{hash_}")
