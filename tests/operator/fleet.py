"""A fleet of two stacks as the operator sees it: rendered objects, and what the API server has of their runs."""

from __future__ import annotations

import json
import os
import signal
import threading
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
from identity.credentials.service_account_key import make
from localcloud.testing.azure import SECRET_KIND
from localcloud.testing.faults import HeldDelivery, HeldFaults
from localcloud.testing.running import Binaries, LocalEnvironment, network
from ops.fleet.file import fleet_of
from ops.fleet.reading import OperatorSettings
from ops.fleet.stacks import FleetEnvironment, FleetStack, write_file
from ops.fleet.tree import NAMESPACE, account_name, tree, write
from ops.stack.environment import BACKEND_VARIABLE
from tests.engine.held_faults import dialled
from tests.engine.small_stack import documents, few_resources
from tests.engine.state_in_azure import BACKEND, FAULTS, ISSUER, KEY, StateInAzure
from tests.harness import PLACE, PROJECT, LocalStack, running_stack
from tests.hypershift.management_cluster import ManagementCluster
from tests.operator.images import write_images, write_project

T = TypeVar("T")

STACKS: Final = f"/apis/pulumi.com/v1/namespaces/{NAMESPACE}/stacks"
UPDATES: Final = f"/apis/auto.pulumi.com/v1alpha1/namespaces/{NAMESPACE}/updates"
_REQUEST: Final = "pulumi.com/reconciliation-request"
SHARED: Final = "local-shared"
HC1: Final = "local-hc1"
_IMAGE: Final = f"registry.example.com/idstack-workspace@sha256:{'0' * 64}"
OPERATORS_NAMESPACE: Final = "pulumi-kubernetes-operator"
_WEBHOOKS_NAMESPACE: Final = "azure-workload-identity-system"
_LONGEST: Final = 900  # seconds until a missing change is a failure; no test waits for it otherwise
# A certificate that is renewed after a day, and lives no longer than the policies let it.
_LIFE: Final = {"lifetimeDays": 180, "renewBeforeDays": 179}
# The answer to a written credential comes later than anything that a test does meanwhile.
_NO_ANSWER: Final = HeldFaults(deliveries=(HeldDelivery("arm", operation="PUT secret", latency=240.0),))
_GATE: Final = {"successes": 1, "settleSeconds": 0, "timeoutSeconds": 15}


@dataclass(frozen=True)
class OperatedFleet:
    """The cluster, with the operator in it, the directory of the rendered tree, and one machine beside it.

    `variables` are those of the machine's commands, `machine` its project.
    """

    cluster: ManagementCluster
    http: httpx.Client
    azure: StateInAzure
    directory: Path
    clock: Path
    machine: Path
    variables: Mapping[str, str]

    def render(self, *, drift: bool = False) -> None:
        """Write the tree."""
        write(self.directory, tree([_environment(self.cluster.stack, drift=drift)]))

    def prepare(self) -> None:
        """Write the stacks' files on the machine and create the stacks, as `idstack fleet prepare` does."""
        for stack in _environment(self.cluster.stack).stacks:
            write_file(stack, self.machine)
            create = ("stack", "init", stack.name, "--no-select", "--secrets-provider", KEY)
            self.idstack("pulumi", "--stack", stack.name, "--", *create)

    def idstack(self, *arguments: str) -> str:
        """Run `idstack` on the machine; returns what it prints."""
        command = (str(self.machine / ".venv/bin/python"), "-P", "-m", "tests.operator.machine", *arguments)
        paths = {"PYTHONPATH": os.pathsep.join(map(str, (self.machine, PROJECT))), BACKEND_VARIABLE: BACKEND}
        done = self.cluster.stack.run(*command, variables={**self.variables, **paths}, directory=self.machine)
        return done.stdout

    def apply(self, *options: str) -> str:
        """Apply the tree as docs/guides/fleet.md has it; returns what is printed."""
        return self.cluster.kubectl("apply", "--kustomize", str(self.directory / "environments/local"), *options)

    def ask(self, stack: str) -> None:
        """Ask for another run, as docs/guides/fleet.md has it."""
        request = f"{_REQUEST}={datetime.now(UTC).isoformat()}"
        self.cluster.kubectl("--namespace", NAMESPACE, "annotate", "stack", stack, "--overwrite", request)

    def run_together(self, *stacks: str) -> list[dict[str, Any]]:
        """Ask for a run of each stack; returns them once all have ended."""
        before = [len(self.runs(stack)) for stack in stacks]
        for stack in stacks:
            self.ask(stack)
        return [self.ended(stack, number) for stack, number in zip(stacks, before, strict=True)]

    def ended(self, stack: str, number: int = 0) -> dict[str, Any]:
        """The run of this number, the first is 0, once it has ended."""

        def found(_: Any) -> dict[str, Any] | None:
            runs = self.runs(stack)
            return runs[number] if len(runs) > number and holds(runs[number], "Complete") else None

        return self.once(UPDATES, found)

    def succeeded(self, stack: str) -> None:
        """Ask for a run, which has to succeed; returns once the stack says so and its workspace is gone."""
        [run] = self.run_together(stack)
        assert not holds(run, "Failed"), run["status"]["message"][-2000:]
        self.settled(stack, "Ready")

    def settled(self, stack: str, *conditions: str) -> dict[str, Any]:
        """The object of a stack once one of the conditions holds, of what it was asked last."""

        def found(stacks: list[dict[str, Any]]) -> dict[str, Any] | None:
            [one] = [each for each in stacks if each["metadata"]["name"] == stack]
            asked = one["metadata"].get("annotations", {}).get(_REQUEST, "")
            last = one.get("status", {}).get("lastUpdate", {})
            of_last = last.get("reconcileRequest", "") == asked
            return one if of_last and any(holds(one, condition) for condition in conditions) else None

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
        runs = [json.loads(blobs[name]) for name in history]
        return [run.get("resourceChanges") or {} for run in runs]

    @contextmanager
    def standing(self, stack: str) -> Iterator[None]:
        """A run, in which a renewal is due, that has written the credential and is not told so."""
        number, before = len(self.runs(stack)), self._versions()
        with dialled(self.cluster.stack, _NO_ANSWER):
            self.ask(stack)
            while self._versions() == before:
                assert not any(holds(run, "Complete") for run in self.runs(stack)[number:]), "it wrote nothing"
                threading.Event().wait(0.5)
            yield

    def lose_workspace(self, stack: str) -> None:
        """Its processes end without a signal that they could handle, as those of a lost node do."""
        pod = f"{stack}-workspace-0"
        recorded = self.cluster.stack.state / "pids" / f"probe-{NAMESPACE}-{pod}-pulumi.json"
        os.killpg(json.loads(recorded.read_text(encoding="utf-8"))["pid"], signal.SIGKILL)
        self.force_out(NAMESPACE, pod)

    def force_out(self, namespace: str, pod: str) -> None:
        """Delete a pod without waiting for its end."""
        self.cluster.kubectl("--namespace", namespace, "delete", "pod", pod, "--force", "--grace-period=0")

    def _versions(self) -> int:
        """How many versions the secrets in all vaults have."""
        return sum(len(secret["versions"]) for secret in documents(self.cluster.stack, SECRET_KIND))

    def runs_are_of(self, days: int) -> None:
        """From now on the runs have the time of so many days ago."""
        self.clock.write_text(rfc3339.render(datetime.now(UTC) - timedelta(days=days)), encoding="utf-8")


def holds(obj: Mapping[str, Any], condition: str) -> bool:
    """Whether an object's condition is true."""
    conditions = obj.get("status", {}).get("conditions", [])
    return any((each["type"], each["status"]) == (condition, "True") for each in conditions)


def _environment(stack: LocalStack, *, drift: bool = False) -> FleetEnvironment:
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
        | {"protect": False, "credentials": {**_LIFE, "propagation": _GATE}},
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
    """A new local cloud on kube-apiserver in which the operator runs, with state and key of stacks on Azure.

    Workspaces sign in to it with their own tokens.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCALCLOUD_PROGRAMS", str(root / "programs"))
        patch.setenv("LOCALCLOUD_BINARIES", str(_issuing(root / "cluster", key := make())))
        folder = root / "stack"
        folder.mkdir()
        with running_stack(folder, **FAULTS) as stack:
            stack.administer()
            azure = StateInAzure(stack, key)
            azure.trust(account_name("local"))
            local = stack.environment
            variables = network(LocalEnvironment.from_file(stack.state / "environment.json"))
            variables |= {LOCAL_ENVIRONMENT_VARIABLE: stack.variables[LOCAL_ENVIRONMENT_VARIABLE]}
            write_images(root / "programs", release, stack, variables)
            cluster = ManagementCluster(stack, release, {})
            cluster.kubectl("apply", "--server-side", "--filename", str(release / "install.yaml"))
            cluster.kubectl("apply", "--filename", str(_webhook(release, root, local.tenant_id)))
            cluster.wait("condition=Available", "deployment/controller-manager", namespace=OPERATORS_NAMESPACE)
            webhook = "deployment/azure-wi-webhook-controller-manager"
            cluster.wait("condition=Available", webhook, namespace=_WEBHOOKS_NAMESPACE)
            with stack.kubernetes("administrator") as http:
                image, machine = root / "programs/image", root / "machine"
                write_project(machine, image / "engine")
                variables |= {
                    "AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential",
                    "AZURE_AUTHORITY_HOST": "https://login.microsoftonline.com/",
                    "AZURE_TENANT_ID": local.tenant_id,
                    "AZURE_CLIENT_ID": local.deployer_client_id,
                    "AZURE_CLIENT_CERTIFICATE_PATH": local.deployer_certificate,
                }
                yield OperatedFleet(cluster, http, azure, root / "fleet", image / "clock", machine, variables)


def _issuing(folder: Path, key: str) -> Path:
    """The control plane's programs, of which kube-apiserver is the issuer that Azure knows, as AKS's is."""
    folder.mkdir()
    (folder / "key.pem").write_text(key, encoding="utf-8")
    for program in Binaries.find().directory.iterdir():
        (folder / program.name).symlink_to(program)
    server = (folder / "kube-apiserver").readlink()
    (folder / "kube-apiserver").unlink()
    options = f"--service-account-issuer={ISSUER} --service-account-key-file={folder / 'key.pem'}"
    last = f"--service-account-signing-key-file={folder / 'key.pem'}"
    (folder / "kube-apiserver").write_text(f'#!/bin/sh\nexec {server} {options} "$@" {last}\n', encoding="utf-8")
    (folder / "kube-apiserver").chmod(0o700)
    return folder


def _webhook(release: Path, root: Path, tenant: str) -> Path:
    """The webhook's objects: one replica, which has the machine's port, with its variables named one by one."""
    objects = list(yaml.safe_load_all((release / "azure-wi-webhook.yaml").read_text(encoding="utf-8")))
    [deployment] = [each["spec"] for each in objects if each["kind"] == "Deployment"]
    [container] = deployment["template"]["spec"]["containers"]
    deployment["replicas"] = 1
    del container["envFrom"]
    settings = {"AZURE_ENVIRONMENT": "AzurePublicCloud", "AZURE_TENANT_ID": tenant}
    container["env"] += [{"name": name, "value": value} for name, value in settings.items()]
    file = root / "webhook.yaml"
    file.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return file
