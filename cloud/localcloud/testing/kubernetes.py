"""The local Kubernetes API for tests: an application to serve, the kinds it has, and objects to put into it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
import yaml
from kubernetes.client.exceptions import ApiException
from pydantic import BaseModel

from localcloud.core.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID, LocalEnvironment
from localcloud.core.cluster import Endpoint
from localcloud.kubelet.csi import HOSTED_TOKENS_DRIVER
from localcloud.kubernetes import schemas
from localcloud.kubernetes.api import app as kubernetes_app
from localcloud.kubernetes.kinds import KINDS, Definition, ResourceKind, definitions, version
from localcloud.kubernetes.kubeconfig import connection, with_one_context

__all__ = [
    "HOSTED_TOKENS_DRIVER",
    "KINDS",
    "TOKEN",
    "Definition",
    "Endpoint",
    "Model",
    "ResourceKind",
    "RunningApi",
    "Value",
    "client_of",
    "config_map",
    "connection",
    "definitions",
    "deployment",
    "kubernetes_app",
    "local_environment",
    "model",
    "present",
    "refusal",
    "schemas",
    "secret",
    "version",
    "write_kubeconfig",
]

Model = TypeVar("Model", bound=BaseModel)
Value = TypeVar("Value")

TOKEN = "token-of-the-test"


@dataclass(frozen=True)
class RunningApi:
    """An API server and the kubeconfig that leads to it."""

    server: str
    ca_file: Path
    kubeconfig: Path


def write_kubeconfig(path: Path, server: str, ca_file: Path, token: str = TOKEN) -> Path:
    """A kubeconfig with one context."""
    document = with_one_context({"server": server, "certificate-authority": str(ca_file)}, {"token": token})
    path.write_text(yaml.safe_dump(document))
    return path


def client_of(kubeconfig: Path) -> httpx.Client:
    """A client of the Kubernetes API that a kubeconfig leads to, signed in as it says; close it."""
    return connection(str(kubeconfig)).client(timeout=60)


def local_environment(api: RunningApi, directory: Path, **endpoints: str) -> LocalEnvironment:
    """The record of a local cloud that is this API and the given endpoints; the other services are nowhere."""
    nowhere = "https://127.0.0.1:1"
    services = ("arm", "graph", "key_vault", "blob", "imds", "proxy", "control")
    return LocalEnvironment(
        **{
            "authority_host": f"{nowhere}/",
            **{f"{service}_endpoint": nowhere for service in services},
            "ca_file": str(api.ca_file),
            "cluster": "builtin",
            "kubernetes_endpoint": api.server,
            "kubeconfig": str(api.kubeconfig),
            "state_dir": str(directory),
            "mounts_dir": str(directory / "mounts"),
            "tenant_id": LOCAL_TENANT_ID,
            "subscription_id": LOCAL_SUBSCRIPTION_ID,
            "deployer_client_id": "",
            "deployer_certificate": "",
            **endpoints,
        }
    )


def model(type_: type[Model], document: dict[str, Any]) -> Model:
    """A document as one of the official client's models, which refuse what does not fit them."""
    return type_.model_validate(document)


def present(value: Value | None) -> Value:
    """A field that the official client's models call optional, and that has to be there."""
    assert value is not None
    return value


def refusal(raised: pytest.ExceptionInfo[ApiException]) -> tuple[int, str, str]:
    """Code, reason and message of the Status that the official client raised."""
    status = json.loads(present(raised.value.body))
    assert status["kind"] == "Status"
    return status["code"], status["reason"], status["message"]


def secret(name: str = "pull", **data: str) -> dict[str, Any]:
    """A Secret whose values are given as text."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    """A ConfigMap; `metadata` are further fields of its metadata."""
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return {**document, "data": data} if data else document


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
