"""An AKS cluster as far as its sign-in goes: an API server with access reviews, and a program that makes tokens."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from identity.aks.permissions import Permission
from tests.unit import cases

TENANT = "99999999-8888-4777-8666-555555555555"
AKS = "6dae42f8-4368-4678-94ff-3960e28e3630"
CLASSES = "secrets-store.csi.x-k8s.io/v1"
# Each version serves all of them.
_PLURALS = ("secretproviderclasses", "azureclusteridentities", "hostedclusters")


def unsigned(**claims: Any) -> str:
    """A token that says this."""
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{payload}.c2ln"


TOKEN = unsigned(aud=AKS, tid=TENANT, oid="deployer-object-id")


@dataclass
class FakeApiServer:
    """Knows one token; `denied` verbs are not allowed, `absent` versions not served. Both may change meanwhile.

    `reason` is what the authorizer says of a refusal. As a new server it refuses the token the first `unsure` times.
    `documents` are what it answers by path, but for those that are `unreadable`: they are forbidden. `codes` are the
    statuses of answers that are no plain success.
    """

    denied: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    reason: str = ""
    token: str = TOKEN
    reviews: list[str] = field(default_factory=list)
    # Namespaces in which everything is allowed that `denied` has for the whole cluster.
    allowed_in: set[str] = field(default_factory=set)
    unsure: int = 0
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    codes: dict[str, int] = field(default_factory=dict)

    def has_control_plane(self, namespace: str, name: str) -> None:
        """HyperShift has a HostedControlPlane there."""
        path = f"/apis/hypershift.openshift.io/v1beta1/namespaces/{namespace}/hostedcontrolplanes"
        self.documents[path] = {"items": [{"metadata": {"name": name, "namespace": namespace}}]}

    def app(self) -> Starlette:
        async def answer(request: Request) -> Response:
            self.unsure -= 1
            if self.unsure >= 0 or request.headers.get("authorization") != f"Bearer {self.token}":
                return JSONResponse({"kind": "Status", "message": "Unauthorized"}, status_code=401)
            if request.method == "POST":
                asked = (await request.json())["spec"]["resourceAttributes"]
                verb = f"{asked['verb']} {asked['resource']}"
                self.reviews.append(verb)
                place = asked.get("namespace") or asked.get("name")
                is_denied = verb in self.denied and place not in self.allowed_in
                status = {"allowed": False, "reason": self.reason} if is_denied else {"allowed": True}
                return JSONResponse({"status": status}, status_code=201)
            if request.url.path in self.unreadable:
                return JSONResponse({"kind": "Status", "reason": "Forbidden"}, status_code=403)
            if request.url.path in self.documents:
                return JSONResponse(self.documents[request.url.path], self.codes.get(request.url.path, 200))
            if "/namespaces/" in request.url.path:
                return JSONResponse({"kind": "Status", "reason": "NotFound"}, status_code=404)
            version = request.url.path.removeprefix("/apis/")
            if version in self.absent:
                return JSONResponse({"kind": "Status"}, status_code=404)
            return JSONResponse({"resources": [{"name": name} for name in _PLURALS]})

        return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])


def program(folder: Path, name: str = "idstack", *, token: str = TOKEN, code: int = 0, error: str = "") -> Path:
    """An exec plugin in a folder of its own, to be put on PATH; returns the folder."""
    folder.mkdir(exist_ok=True)
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}}
    script = folder / name
    script.write_text(f"#!/bin/sh\necho '{error}' >&2\n[ {code} = 0 ] && echo '{json.dumps(answer)}'\nexit {code}\n")
    script.chmod(0o755)
    return folder


def skeleton(server: str, *, change: Callable[[dict[str, Any]], object] = lambda _: None) -> str:
    """The kubeconfig that AKS gives out, base64."""
    words = {"SERVER": server, "AKS": AKS, "TENANT": TENANT}
    document: dict[str, Any] = cases.read(Path(__file__).with_name("skeleton.yaml"), words)
    change(document)
    return base64.b64encode(yaml.safe_dump(document).encode()).decode()


def granted_by(manifests: Iterable[Mapping[str, Any]]) -> Iterator[Permission]:
    """What the roles among these manifests grant, each where they grant it."""
    for role in manifests:
        for rule in role.get("rules", ()):
            places = [role["metadata"].get("namespace", "")]
            parts = (rule["apiGroups"], rule["resources"], rule["verbs"], places, rule.get("resourceNames", [""]))
            yield from (Permission(*combination) for combination in product(*parts))
