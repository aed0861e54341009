"""A small stack whose two Entra applications are renewed by the days of a clock, and a pod with one's credential."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import Template
from typing import Any, Final

import pytest
import yaml
from kubernetes import client, config, watch
from kubernetes.dynamic import DynamicClient

from identity.credentials import rfc3339
from localcloud.testing.running import DAEMON, processes
from tests.engine.clients import Client, bare_sign_in, read
from tests.engine.small_stack import documents, small_stack
from tests.harness import LocalStack

_IDENTITY: Final = "cloudProvider"
_SECRET: Final = "cloud-provider-hc1-json"
_NAMESPACE: Final = "clusters-hc1"
# A certificate of two years that is renewed after a day is valid now, whenever in the last year the clock was.
LIFE: Final = {"lifetimeDays": 730, "renewBeforeDays": 729}
# What a gate must ask so that no client is ever refused: the slowest replica of the local Entra ID lags by 1.5 seconds.
SETTLED: Final = {"successes": 5, "settleSeconds": 2, "timeoutSeconds": 60}
# More than any test lets pass: no certificate may begin in the future.
_DAYS: Final = 62
_SOON: Final = 60  # seconds until the pod runs
_MANIFESTS: Final = Path(__file__).with_name("consumer.yaml").read_text(encoding="utf-8")


@dataclass
class Ageing:
    """A stack, and the clock of its schedules."""

    stack: LocalStack
    clock: datetime
    patch: pytest.MonkeyPatch

    def pass_a_day(self) -> None:
        """After it a renewal is due."""
        self.clock += timedelta(days=1)
        assert self.clock < datetime.now(UTC), "no certificate is used before its time"
        self.patch.setenv("IDSTACK_CLOCK", rfc3339.render(self.clock))


class Rotating(Ageing):
    """The stack of this module, with its pod's credential `file`."""

    @property
    def file(self) -> Path:
        """Where the pod has its credential."""
        return Path(self.stack.environment.mounts_dir, _NAMESPACE, "consumer/mnt/certs", _SECRET)

    def renew(self) -> subprocess.CompletedProcess[str]:
        """`pulumi up` a day later."""
        self.pass_a_day()
        return self.stack.up()

    @property
    def thumbprint(self) -> str:
        """The certificate that is current now."""
        return str(self.stack.control_plane[_IDENTITY]["thumbprint"])

    @property
    def client_id(self) -> str:
        """The application."""
        return str(self.stack.control_plane[_IDENTITY]["clientID"])

    def registered(self) -> set[str]:
        """Ids of the certificates registered for the application."""
        applications = documents(self.stack, "entra-application")
        [application] = [registration for registration in applications if registration["appId"] == self.client_id]
        return {key["keyId"] for key in application["keys"] if key["removedAt"] is None}

    @contextmanager
    def propagation(self, *, successes: int, settle: int, replica_delays: tuple[float, ...]) -> Iterator[None]:
        """Within the block the gate asks for this, of an Entra ID as slow as that."""
        asked = {"successes": successes, "settleSeconds": settle, "timeoutSeconds": 60}
        before = self.stack.faults
        with self.stack.configured(credentials={**LIFE, "propagation": asked}):
            self._restart({**before, "replica_delays": replica_delays})
            try:
                yield
            finally:
                self._restart(before)

    def _restart(self, faults: Any) -> None:
        daemon = processes.alive(self.stack.state / "pids", DAEMON)
        assert daemon is not None
        daemon.end(grace=30)
        self.stack.faults = faults
        self.stack.local_cloud("start")


@contextmanager
def rotating_stack(root: Path) -> Iterator[Rotating]:
    """The stack, up since `_DAYS` days, its pod running."""
    with (
        pytest.MonkeyPatch.context() as patch,
        small_stack(root, "hypershift") as stack,
        stack.configured(credentials={**LIFE, "propagation": SETTLED}),
    ):
        rotating = Rotating(stack, datetime.now(UTC) - timedelta(days=_DAYS), patch)
        rotating.pass_a_day()
        patch.setenv("REQUESTS_CA_BUNDLE", stack.environment.ca_file)
        stack.up()
        run_consumer(stack)
        yield rotating


@contextmanager
def pod_signing_in(rotating: Rotating) -> Iterator[Client]:
    """A pod signs in again all the time with what it has mounted, and is never refused."""
    with Client(lambda: bare_sign_in(read(rotating.file))) as client:
        client.await_certificates(1)
        yield client
        client.await_sign_ins(5)
    assert client.failures == []


def await_certificate(rotating: Rotating) -> None:
    """Return once the pod has the current certificate mounted."""
    with Client(lambda: bare_sign_in(read(rotating.file))) as client:
        client.await_certificate(rotating.thumbprint)


def run_consumer(stack: LocalStack) -> None:
    """Run the pod. What HyperShift's operators do: SecretProviderClasses, and a Deployment that mounts one."""
    with config.new_client_from_config(stack.environment.kubeconfig) as api:
        kinds = DynamicClient(api).resources
        for manifest in _manifests(stack):
            kind = kinds.get(api_version=manifest["apiVersion"], kind=manifest["kind"])
            kind.create(manifest, namespace=_NAMESPACE if kind.namespaced else None)
        deployments = watch.Watch().stream(
            client.AppsV1Api(api).list_namespaced_deployment, _NAMESPACE, timeout_seconds=_SOON
        )
        assert any(change["object"].status.ready_replicas for change in deployments), "the pod does not run"


def _manifests(stack: LocalStack) -> Iterator[dict[str, Any]]:
    """The namespace, a SecretProviderClass for each identity, and the pod's Deployment."""
    namespace, secret_class, deployment = _MANIFESTS.split("---\n")
    yield yaml.safe_load(namespace)
    for row in stack.control_plane.values():
        places = {**row, **stack.outputs, "tenantId": stack.environment.tenant_id}
        yield yaml.safe_load(Template(secret_class).substitute(places))
    yield yaml.safe_load(deployment)
