"""The pods' file trees: `<mounts>/<namespace>/<workload>` leads to the newest pod of the workload.

Each pod has a tree of its own, `<mounts>/<namespace>/.<pod>`, so that two pods of a workload (replicas, a rollout) do
not write into each other's files; the workload's name is a link.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from localcloud.kubelet.selection import workload_of
from localcloud.kubernetes.calls import Object


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
