"""kube-apiserver with etcd, its controllers and kubectl: built from pinned Go modules, and only when asked for.

`make up CLUSTER=apiserver` and `make e2e` ask; the local cloud's built-in Kubernetes API needs none of it. The record
of the build is `.tools/cluster.json`, where `cloud/localcloud/apiserver/commands.py` finds it.
"""

from __future__ import annotations

import json
from pathlib import Path

from tools import golang, pinned
from tools.pinned import dotted
from tools.steps import ROOT, TOOLS, ProcessError, SetupError, drafted, fingerprint

RECORD = TOOLS / "cluster.json"
_KUBERNETES_MODULE = ROOT / "tools/kube-apiserver"
_ETCD_MODULE = ROOT / "tools/etcd"
_KUBERNETES = "k8s.io/kubernetes"
_ETCD = "go.etcd.io/etcd/server/v3"
_COMMANDS = ("kube-apiserver", "kube-controller-manager", "kubectl")


def ensure() -> str:
    """Build the commands if their pins changed, and record where they are.

    Returns what was done, for the progress line. Raises SetupError if they cannot be built.
    """
    build = TOOLS / f"cluster-{fingerprint([*pinned.files(_KUBERNETES_MODULE), *pinned.files(_ETCD_MODULE)])}"
    version = dotted(pinned.version(_KUBERNETES_MODULE, _KUBERNETES))
    outcome = f"up to date, {version}"
    if not build.exists():
        _build(build, version)
        outcome = f"{version} built from tools/kube-apiserver"
    draft = RECORD.with_suffix(".draft")
    draft.write_text(json.dumps({"bin": str(build), "version": version}, indent=2) + "\n")
    draft.replace(RECORD)
    return outcome


def _build(target: Path, version: str) -> None:
    go = golang.command()
    etcd, flags = dotted(pinned.version(_ETCD_MODULE, _ETCD)), _version_flags(version)
    try:
        with drafted(target) as draft:
            pinned.build("cluster", _ETCD_MODULE, _ETCD, draft / "etcd", version=etcd, go=go)
            for name in _COMMANDS:
                package = f"{_KUBERNETES}/cmd/{name}"
                pinned.build("cluster", _KUBERNETES_MODULE, package, draft / name, version=version, flags=flags, go=go)
    except ProcessError as error:
        raise SetupError(
            f"kube-apiserver cannot be installed on this machine: the Go build failed:\n{error}\n"
            "Ways out, one is enough:\n"
            "  - let this machine reach a Go module proxy (set its address with `go env -w GOPROXY=...`)\n"
            "  - leave CLUSTER out: the local cloud's built-in Kubernetes API needs nothing more"
        ) from None


def _version_flags(version: str) -> str:
    """The linker flags of Kubernetes' `hack/lib/version.sh`, as far as clients read their values."""
    major, minor, _ = version.split(".")
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items())
