"""A fleet of two stacks as the operator sees it: rendered objects, and what the API server has of their runs."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx
import pytest
import yaml

from identity.clouds import LOCAL_ENVIRONMENT_VARIABLE
from identity.credentials import rfc3339
from ops.fleet.file import fleet_of
from ops.fleet.reading import OperatorSettings
from ops.fleet.stacks import FleetEnvironment, FleetStack
from ops.fleet.tree import NAMESPACE, tree, write
from tests.engine.small_stack import few_resources
from tests.engine.state_in_azure import BACKEND, FAULTS, KEY, StateInAzure
from tests.harness import PLACE, LocalStack, running_stack
from tests.hypershift.management_cluster import ManagementCluster
from tests.operator.images import write_images

T = TypeVar("T")

STACKS: Final = f"/apis/pulumi.com/v1/namespaces/{NAMESPACE}/stacks"
UPDATES: Final = f"/apis/auto.pulumi.com/v1alpha1/namespaces/{NAMESPACE}/updates"
_REQUEST: Final = "pulumi.com/reconciliation-request"
SHARED: Final = "local-shared"
HC1: Final = "local-hc1"
_IMAGE: Final = f"registry.example.com/idstack-workspace@sha256:{'0' * 64}"
_OPERATORS_NAMESPACE: Final = "pulumi-kubernetes-operator"
_SIGN_IN: Final = ("ARM_TENANT_ID", "ARM_SUBSCRIPTION_ID", "ARM_CLIENT_ID", "ARM_CLIENT_CERTIFICATE_PATH")
# What the webhook of Azure Workload Identity gives a pod; `AZURE_TOKEN_CREDENTIALS` is rendered.
_WEBHOOK: Final = ("AZURE_AUTHORITY_HOST", "AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE")
_LONGEST: Final = 900  # seconds until a missing change is a failure; no test waits for it otherwise
# A certificate that is renewed after a day, and lives no longer than the policies let it.
_LIFE: Final = {"lifetimeDays": 180, "renewBeforeDays": 179}
_GATE: Final = {"successes": 1, "settleSeconds": 0, "timeoutSeconds": 15}


@dataclass(frozen=True)
class OperatedFleet:
    """The cluster, with the operator in it, and the directory of the rendered tree."""

    cluster: ManagementCluster
    http: httpx.Client
    azure: StateInAzure
    directory: Path
    clock: Path

    def render(self, *, drift: bool = False, **credentials: Any) -> None:
        """Write the tree; `credentials` are settings of both stacks."""
        write(self.directory, tree([_environment(self.cluster.stack, drift=drift, credentials=credentials)]))

    def apply(self, *options: str) -> str:
        """Apply the tree as docs/guides/fleet.md has it; returns what is printed."""
        return self.cluster.kubectl("apply", "--kustomize", str(self.directory / "environments/local"), *options)

    def ask(self, stack: str) -> None:
        """Ask for another run, as docs/guides/fleet.md has it."""
        request = f"{_REQUEST}={datetime.now(UTC).isoformat()}"
        self.cluster.kubectl("--namespace", NAMESPACE, "annotate", "stack", stack, "--overwrite", request)

    def run(self, stack: str) -> dict[str, Any]:
        """Ask for a run; returns it once it has ended."""
        before = len(self.runs(stack))
        self.ask(stack)
        return self.ended(stack, before)

    def ended(self, stack: str, number: int = 0) -> dict[str, Any]:
        """The run of this number, the first is 0, once it has ended."""

        def found(_: Any) -> dict[str, Any] | None:
            runs = self.runs(stack)
            return runs[number] if len(runs) > number and holds(runs[number], "Complete") else None

        return self.once(UPDATES, found)

    def succeeded(self, stack: str) -> None:
        """Ask for a run, which has to succeed; returns once the stack says so and its workspace is gone."""
        assert not holds(run := self.run(stack), "Failed"), run["status"]["message"][-2000:]
        self.settled(stack, "Ready")

    def settled(self, stack: str, condition: str) -> dict[str, Any]:
        """The object of a stack once this condition holds, of what it was asked last."""

        def found(stacks: list[dict[str, Any]]) -> dict[str, Any] | None:
            [one] = [each for each in stacks if each["metadata"]["name"] == stack]
            asked = one["metadata"].get("annotations", {}).get(_REQUEST, "")
            last = one.get("status", {}).get("lastUpdate", {})
            return one if holds(one, condition) and last.get("reconcileRequest", "") == asked else None

        return self.once(STACKS, found)

    def because(self, stack: str, condition: str, reason: str) -> dict[str, Any]:
        """The object of a stack once this condition holds for this reason."""

        def found(stacks: list[dict[str, Any]]) -> dict[str, Any] | None:
            [one] = [each for each in stacks if each["metadata"]["name"] == stack]
            conditions = [(each["type"], each["reason"]) for each in one["status"]["conditions"]]
            return one if (condition, reason) in conditions else None

        return self.once(STACKS, found)

    def once(self, path: str, found: Callable[[list[dict[str, Any]]], T | None]) -> T:
        """What `found` makes of the objects as soon as that is something; tried again at every change."""
        while True:
            listed = self.http.get(path).raise_for_status().json()
            if (result := found(listed["items"])) is not None:
                return result
            version = listed["metadata"]["resourceVersion"]
            watch = {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(_LONGEST)}
            with self.http.stream("GET", path, params=watch, timeout=2 * _LONGEST) as changes:
                assert next(changes.iter_lines(), None), f"nothing changes any more: {json.dumps(listed, indent=1)}"

    def objects(self, path: str) -> list[dict[str, Any]]:
        """All objects of a collection of the API."""
        items: list[dict[str, Any]] = self.http.get(path).raise_for_status().json()["items"]
        return items

    def runs(self, stack: str) -> list[dict[str, Any]]:
        """The runs of a stack's object, the oldest first."""
        label = {"labelSelector": f"pulumi.com/stack-name={stack}"}
        runs = self.http.get(UPDATES, params=label).raise_for_status().json()["items"]
        return sorted(runs, key=lambda run: str(run["metadata"]["creationTimestamp"]))

    def changes(self, stack: str) -> list[dict[str, int]]:
        """How many resources each run of the stack has created, left as they are ..., as the backend remembers it."""
        blobs = self.azure.blobs()
        history = sorted(name for name in blobs if f"/{stack}/" in name and name.endswith(".history.json"))
        runs = [json.loads(b64decode(json.loads(blobs[name])["content"])) for name in history]
        return [run.get("resourceChanges") or {} for run in runs]

    def runs_are_of(self, days: int) -> None:
        """From now on the runs have the time of so many days ago."""
        self.clock.write_text(rfc3339.render(datetime.now(UTC) - timedelta(days=days)), encoding="utf-8")


def holds(obj: Mapping[str, Any], condition: str) -> bool:
    """Whether an object's condition is true."""
    conditions = obj.get("status", {}).get("conditions", [])
    return any((each["type"], each["status"]) == (condition, "True") for each in conditions)


def _environment(stack: LocalStack, *, drift: bool, credentials: Mapping[str, Any]) -> FleetEnvironment:
    """A local fleet with state and key of one on Azure, which a fleet file has no words for."""
    [small] = few_resources(stack)["hostedClusters"]
    imported = small["identities"]["disk"]
    # A workspace has no file of this machine.
    elsewhere = {**imported, "credential": {"file": str(stack.root / imported["credential"]["file"])}}
    identities = {
        field: elsewhere if identity == imported else identity for field, identity in small["identities"].items()
    }
    cluster = {**small, "identities": identities}
    name = cluster.pop("name")
    document = {
        "name": "local",
        "settings": {key: stack.configuration(key) for key in (*PLACE, "managementCluster")}
        | {"protect": False, "credentials": {**_LIFE, "propagation": _GATE, **credentials}},
        "shared": {"settings": {"vault": stack.configuration("vault")}},
        "clusterDefaults": {"settings": {"clusterSide": "hypershift"}},
        "clusters": [{"name": name, "hostedCluster": cluster}],
    }
    [local] = fleet_of(yaml.safe_dump({"environments": [document]}))
    assert local.shared is not None
    operator = OperatorSettings.model_validate(
        {"image": _IMAGE, "clientId": stack.environment.deployer_client_id, "drift": drift}
    )

    def keyed(stack: FleetStack) -> FleetStack:
        return replace(stack, secrets_provider=KEY)

    waves = tuple(replace(wave, stacks=tuple(map(keyed, wave.stacks))) for wave in local.waves)
    return replace(local, backend=BACKEND, operator=operator, shared=keyed(local.shared), waves=waves)


@contextmanager
def operated(release: Path, root: Path) -> Iterator[OperatedFleet]:
    """A new local cloud on kube-apiserver in which the operator runs, with state and key of stacks on Azure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCALCLOUD_PROGRAMS", str(root / "programs"))
        folder = root / "stack"
        folder.mkdir()
        with running_stack(folder, **FAULTS) as stack:
            stack.administer()
            azure = StateInAzure(stack)
            pod = azure.writer(root / "writer").environment
            variables = {name: pod[name] for name in (*_WEBHOOK, "HTTPS_PROXY", "NO_PROXY", "no_proxy")}
            variables |= {name: stack.variables[name] for name in (*_SIGN_IN, LOCAL_ENVIRONMENT_VARIABLE)}
            variables |= dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), stack.environment.ca_file)
            write_images(root / "programs", release, stack, variables)
            cluster = ManagementCluster(stack, release, {})
            cluster.kubectl("apply", "--server-side", "--filename", str(release / "install.yaml"))
            cluster.wait("condition=Available", "deployment/controller-manager", namespace=_OPERATORS_NAMESPACE)
            with stack.kubernetes("administrator") as http:
                yield OperatedFleet(cluster, http, azure, root / "fleet", root / "programs/image/clock")
