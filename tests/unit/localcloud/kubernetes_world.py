"""A running Kubernetes API for tests, and objects to put into it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

TOKEN = "token-of-the-test"


@dataclass(frozen=True)
class RunningApi:
    """An API server and the kubeconfig that leads to it."""

    server: str
    ca_file: Path
    kubeconfig: Path


def write_kubeconfig(path: Path, server: str, ca_file: Path, token: str = TOKEN) -> Path:
    """A kubeconfig with one context."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {"server": server, "certificate-authority": str(ca_file)}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "admin"}}],
        "current-context": "local",
    }
    path.write_text(yaml.safe_dump(document))
    return path


def secret(name: str = "pull", **data: str) -> dict[str, Any]:
    """A Secret whose values are given as text."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def deployment(name: str = "web", *, command: list[str] | None = None, **pod: Any) -> dict[str, Any]:
    """A Deployment of one container; `pod` are further fields of the pod's spec."""
    container = {"name": "c", "image": "registry.example.com/c:1", "command": command or ["sleep", "600"]}
    container |= pod.pop("container", {})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **pod}},
        },
    }
