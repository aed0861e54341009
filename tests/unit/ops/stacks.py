"""What the commands read: a stack's outputs, the Kubernetes API, and the probes' reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from identity.clouds import LocalEnvironment
from ops.world.cluster_state import ProbeResult
from ops.world.seen import SeenReport
from tests.unit import cases

NAMESPACE = "clusters-hc1"


def output(secret_provider_class: str, secret: str, **changes: Any) -> Any:
    """One identity in the stack's outputs (`controlPlane` of a hosted cluster)."""
    return {
        "clientID": "6f2c1e7a-0000-4000-8000-00000000bbbb",
        "credentialsSecretName": secret,
        "objectEncoding": "utf-8",
        "secretProviderClass": secret_provider_class,
        "notAfter": "2027-02-19T16:50:04Z",
        "renewAfter": "2027-01-05T16:50:04Z",
        "thumbprint": "9F3A6C1B0D2E4F5A6B7C8D9E0F1A2B3C4D5E6F70",
        **changes,
    }


# In another order than the catalogue's.
OUTPUTS: Any = {
    "keyVaultName": "kv-test",
    "hostedClusters": {
        "hc1": {
            "namespace": "clusters",
            "controlPlane": {
                "kms": output("managed-azure-kms", "kms-hc1-json"),
                "ingress": output("managed-azure-ingress", "ingress-hc1-json"),
                "controlPlaneOperator": output("managed-azure-cpo", "cpo-hc1-json"),
            },
        }
    },
}


def report(file: str = "/mnt/certs/ingress-hc1-json", **changes: Any) -> Any:
    """The report of a probe that is ready (`identity.credentials.probe`, GET /readyz), as `probes` reads it."""
    return {**cases.read(Path(__file__).with_name("report.yaml"), {"FILE": file}), **changes}


def answered(pod: str, document: Any, mounts: Path | None = None) -> ProbeResult:
    """A probe that answers with this report."""
    return ProbeResult(pod, SeenReport.of(document, mounts))


def refused(error: str, file: str = "/mnt/certs/ingress-hc1-json") -> Any:
    """What a probe answers whose sign-in was refused."""
    return report(
        file,
        ready=False,
        signIn={"ok": False, "at": "2026-11-21T17:00:00Z", "error": error},
        proof={"ok": False, "status": None, "action": None, "error": None, "at": None},
    )


@dataclass
class FakeCluster:
    """A Kubernetes API with pods; `selectors` are what they were asked for by."""

    pods: list[dict[str, Any]] = field(default_factory=list)
    selectors: list[str | None] = field(default_factory=list)

    def app(self) -> Starlette:
        """The application to serve, over plain HTTP."""
        return Starlette(
            routes=[
                Route("/api/v1/pods", self._pods),
                # None was made for probes of service accounts.
                Route("/api/v1/namespaces", lambda _: JSONResponse({"items": []})),
            ]
        )

    def add_pod(
        self,
        deployment: str,
        status: dict[str, Any],
        *,
        port: int = 8080,
        namespace: str = NAMESPACE,
        created: str = "2026-11-21T16:00:00Z",
        **metadata: Any,
    ) -> None:
        """Add the pod of a probe; one that runs has `podIP` in its status."""
        self.pods.append(
            {
                "metadata": {
                    "name": f"{deployment}-{len(self.pods)}",
                    "namespace": namespace,
                    "labels": {
                        "app.kubernetes.io/name": "credential-probe",
                        "app.kubernetes.io/instance": deployment,
                    },
                    "creationTimestamp": created,
                    **metadata,
                },
                "spec": {"containers": [{"name": "probe", "ports": [{"containerPort": port}]}]},
                "status": status,
            }
        )

    async def _pods(self, request: Request) -> Response:
        self.selectors.append(request.query_params.get("labelSelector"))
        return JSONResponse({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": self.pods})


def probe(found: dict[str, Any]) -> Starlette:
    """A probe that answers with this report, as the real one does."""

    async def readyz(request: Request) -> Response:
        answer = {"clientId" if key == "clientID" else key: value for key, value in found.items()}
        return JSONResponse(answer, status_code=200 if found["ready"] else 503)

    return Starlette(routes=[Route("/readyz", readyz)])


def running(url: str) -> dict[str, Any]:
    """Arguments of `add_pod` for a pod whose probe is served at `url`."""
    address, _, port = url.removeprefix("http://").partition(":")
    return {"status": {"phase": "Running", "podIP": address}, "port": int(port)}


def local_environment(state: Path, kubeconfig: Path) -> LocalEnvironment:
    """What a local cloud writes down in its state directory; but for the Kubernetes API nothing answers."""
    tls = ("arm", "graph", "key_vault", "blob", "kubernetes")
    return LocalEnvironment(
        authority_host="https://127.0.0.1:1/",
        **{f"{name}_endpoint": "https://127.0.0.1:1" for name in tls},
        **{f"{name}_endpoint": "http://127.0.0.1:1" for name in ("imds", "proxy", "control")},
        ca_file=f"{state}/ca.pem",
        cluster="builtin",
        kubeconfig=str(kubeconfig),
        state_dir=str(state),
        mounts_dir=f"{state}/mounts",
        tenant_id="10ca1000-0000-4000-8000-000000000001",
        subscription_id="10ca1000-0000-4000-8000-000000000002",
        deployer_client_id="6f2c1e7a-0000-4000-8000-00000000dddd",
        deployer_certificate=f"{state}/deployer.pem",
    )


def write_kubeconfig(path: Path, server: str) -> Path:
    """A kubeconfig for the API at `server`."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {"server": server}}],
        "users": [{"name": "local", "user": {"token": "a-token"}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
        "current-context": "local",
    }
    path.write_text(yaml.safe_dump(document))
    return path
