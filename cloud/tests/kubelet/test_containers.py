"""A pod's containers as processes of this machine: what they are given, how they end, what the API shows of it."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from localcloud.core.clouds import LocalEnvironment
from localcloud.kubelet.client import CONFIG_MAPS, PODS, SECRETS
from localcloud.kubelet.selection import is_ready
from localcloud.testing.kubernetes import config_map, secret
from localcloud.testing.running import ended
from tests.kubelet_world import NAMESPACE, ClusterApi, Kubelet, Object, pod, running, states

SCRATCH = {"name": "v", "emptyDir": {}}


def prints_environment(*arguments: str) -> list[str]:
    """A command that prints its arguments and variables as JSON."""
    script = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"
    return [sys.executable, "-c", script, *arguments]


def shown(cluster: ClusterApi, kubelet: Kubelet, document: Object) -> tuple[list[str], dict[str, str]]:
    """Arguments and variables that the pod's container has printed."""
    cluster.create(PODS, document)
    cluster.finished("web")
    arguments, variables = json.loads(kubelet.log("web"))
    return arguments, variables


def waits_for(reason: str, text: str) -> Callable[[Object], bool]:
    """Whether a pod's container waits for this reason, with a message that holds `text`."""

    def holds(web: Object) -> bool:
        waiting = states(web).get("c", {}).get("waiting", {})
        return waiting.get("reason") == reason and text in waiting.get("message", "")

    return holds


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A named pipe that a container may write to."""
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def read_from(pipe: Path) -> str:
    """What is written to the pipe, once it is."""
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert select.select([reader], [], [], 120)[0], "nothing was written"
        return os.read(reader, 4096).decode()
    finally:
        os.close(reader)


def test_mount_paths_are_local_in_the_process_and_unchanged_in_the_object(
    cluster: ClusterApi, kubelet: Kubelet
) -> None:
    env = [{"name": "AZURE_CREDENTIAL_FILE", "value": "/mnt/v/credential.json"}, {"name": "OTHER", "value": "/etc/x"}]
    document = pod("web", SCRATCH, command=prints_environment(), args=["--file=/mnt/v/a", "/mnt/vault"], env=env)

    arguments, variables = shown(cluster, kubelet, document)

    tree = kubelet.tree("web").resolve()
    assert arguments == [f"--file={tree}/mnt/v/a", "/mnt/vault"]
    assert variables["AZURE_CREDENTIAL_FILE"] == f"{tree}/mnt/v/credential.json"
    assert variables["OTHER"] == "/etc/x"
    (container,) = cluster.get(PODS, "web")["spec"]["containers"]
    assert container["args"] == ["--file=/mnt/v/a", "/mnt/vault"]
    assert container["env"] == env


def test_a_process_gets_nothing_of_the_kubelets_environment(
    cluster: ClusterApi, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch, environment: LocalEnvironment
) -> None:
    monkeypatch.setenv("ARM_CLIENT_ID", "marker")

    _, variables = shown(cluster, kubelet, pod("web", command=prints_environment()))

    tree = str(kubelet.tree("web").resolve())
    assert (variables["HOME"], variables["PROBE_MOUNT_ROOT"], variables["HOSTNAME"]) == (tree, tree, "web")
    assert variables["SSL_CERT_FILE"] == variables["REQUESTS_CA_BUNDLE"] == environment.ca_file
    assert "ARM_CLIENT_ID" not in variables


def test_variables_come_from_the_pod_from_objects_and_from_each_other(cluster: ClusterApi, kubelet: Kubelet) -> None:
    cluster.create(SECRETS, secret("pull", key="s3cret"))
    cluster.create(CONFIG_MAPS, config_map("settings", {"level": "debug"}))
    env = [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "pull", "key": "key"}}},
        {"name": "LEVEL", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "level"}}},
        {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "none", "key": "key", "optional": True}}},
        {"name": "URL", "value": "http://$(POD_IP):8080"},
    ]
    document = pod("web", command=prints_environment("$(URL)", "$(NONE)"), env=env)
    document["metadata"]["labels"] = {"app": "idstack"}

    arguments, variables = shown(cluster, kubelet, document)

    address = cluster.get(PODS, "web")["status"]["podIP"]
    assert address.startswith("127.")
    assert {name: variables[name] for name in ("POD_IP", "APP", "SECRET", "LEVEL", "URL")} == {
        "POD_IP": address,
        "APP": "idstack",
        "SECRET": "s3cret",
        "LEVEL": "debug",
        "URL": f"http://{address}:8080",
    }
    assert "NONE" not in variables
    assert arguments == [f"http://{address}:8080", "$(NONE)"]


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ({"resource": "requests.memory", "containerName": "c"}, str(128 << 20)),
        ({"resource": "requests.memory", "divisor": "1M"}, "135"),
        ({"resource": "requests.cpu"}, "1"),
        ({"resource": "requests.cpu", "divisor": "1m"}, "50"),
        ({"resource": "requests.ephemeral-storage"}, "0"),
        ({"resource": "limits.cpu"}, str(os.cpu_count())),
    ],
    ids=["bytes", "rounded up", "a part of a core", "milli", "not requested", "without a limit the node's"],
)
def test_a_variable_has_what_a_container_requests(
    cluster: ClusterApi, kubelet: Kubelet, reference: Object, value: str
) -> None:
    requested = {"requests": {"cpu": "50m", "memory": "128Mi"}}
    env = [{"name": "HAS", "valueFrom": {"resourceFieldRef": reference}}]

    _, variables = shown(cluster, kubelet, pod("web", command=prints_environment(), env=env, resources=requested))

    assert variables["HAS"] == value


def test_a_container_runs_where_it_asks_to(cluster: ClusterApi, kubelet: Kubelet) -> None:
    cluster.create(PODS, pod("web", SCRATCH, command=["pwd"], workingDir="/mnt/v/made/for/it"))
    cluster.finished("web")

    assert kubelet.log("web").strip() == f"{kubelet.tree('web').resolve()}/mnt/v/made/for/it"


@pytest.mark.parametrize(
    ("container", "message"),
    [
        ({"command": None}, "the container has no command: images are not pulled on a local node"),
        ({"envFrom": [{"secretRef": {"name": "pull"}}]}, "envFrom is not supported by the local kubelet"),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.none"}}}]},
            "field reference spec.none: the pod has no such string field",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "pull", "key": "none"}}}]},
            f"couldn't find key none in secret {NAMESPACE}/pull",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "k"}}}]},
            'configmap "none" not found',
        ),
        (
            {"readinessProbe": {"exec": {"command": ["true"]}}},
            "readinessProbe: the local kubelet probes by httpGet in readinessProbe and livenessProbe only",
        ),
        (
            {"startupProbe": {"httpGet": {"port": 1}}},
            "startupProbe: the local kubelet probes by httpGet in readinessProbe and livenessProbe only",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits", "containerName": "d"}}}]},
            "container d not found",
        ),
        (
            {"livenessProbe": {"httpGet": {"port": "web"}}, "ports": [{"name": "metrics", "containerPort": 80}]},
            "livenessProbe: the container has no port named web",
        ),
    ],
)
def test_a_container_that_cannot_be_configured_reports_why(
    cluster: ClusterApi, kubelet: Kubelet, container: Object, message: str
) -> None:
    cluster.create(SECRETS, secret("pull", key="v"))

    cluster.create(PODS, pod("web", **container))

    cluster.event("web", "Failed", f"Error: {message}")
    cluster.once_pod("web", waits_for("CreateContainerConfigError", message))


def test_a_container_starts_as_soon_as_its_secret_is_there(cluster: ClusterApi, kubelet: Kubelet) -> None:
    reference = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "pull", "key": "key"}}}
    cluster.create(PODS, pod("web", env=[reference]))
    cluster.once_pod("web", waits_for("CreateContainerConfigError", 'secret "pull" not found'))

    cluster.create(SECRETS, secret("pull", key="v"))

    cluster.ready("web")


def test_a_program_that_is_not_there_is_named(cluster: ClusterApi, kubelet: Kubelet) -> None:
    cluster.create(PODS, pod("web", command=["no-such-program"]))

    cluster.once_pod("web", waits_for("RunContainerError", "failed to start container c: "))
    cluster.event("web", "Failed", "no-such-program")


@pytest.mark.parametrize(
    "started",
    [
        {"command": ["/usr/bin/operator", "{}/file"]},
        {"command": [], "args": ["{}/file"], "image": f"example.com:5000/team/operator:v1@sha256:{'0' * 64}"},
    ],
    ids=["by its path", "as the entry point"],
)
def test_a_program_of_an_image_runs_whatever_is_mounted_above_its_folder(
    cluster: ClusterApi,
    environment: LocalEnvironment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    started: Object,
) -> None:
    program = tmp_path / "programs/operator"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho $1\n", encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setenv("LOCALCLOUD_PROGRAMS", str(program.parent))
    above = "/" + tmp_path.parts[1]
    words: Object = json.loads(json.dumps(started).replace("{}", above))

    with running(environment) as kubelet:
        mounts = [{"name": "v", "mountPath": above}]
        cluster.create(PODS, pod("web", {"name": "v", "emptyDir": {}}, volumeMounts=mounts, **words))
        cluster.finished("web")

        assert Path(kubelet.log("web").strip()).parts[-2:] == (tmp_path.parts[1], "file")


@pytest.mark.parametrize(
    ("script", "phase", "code", "message"),
    [
        ("exit 0", "Succeeded", 0, ""),
        ("echo no credential; exit 7", "Failed", 7, "no credential"),
        ("kill -KILL $$$$", "Failed", 137, ""),
    ],
)
def test_the_end_of_a_container_is_shown_with_its_last_words(
    cluster: ClusterApi, kubelet: Kubelet, script: str, phase: str, code: int, message: str
) -> None:
    cluster.create(PODS, pod("web", command=["sh", "-c", script]))

    web = cluster.finished("web")

    terminated = states(web)["c"]["terminated"]
    assert (web["status"]["phase"], terminated["exitCode"], terminated["message"]) == (phase, code, message)
    assert terminated["startedAt"] <= terminated["finishedAt"]
    assert not is_ready(web)


def test_a_container_that_ends_runs_again_and_the_restarts_are_counted(cluster: ClusterApi, kubelet: Kubelet) -> None:
    cluster.create(PODS, pod("web", spec={"restartPolicy": "Always"}, command=["sh", "-c", "echo crashed; exit 3"]))

    def has_restarted_twice(web: Object) -> bool:
        return any(
            container_status["restartCount"] >= 2 for container_status in web["status"].get("containerStatuses", [])
        )

    web = cluster.once_pod("web", has_restarted_twice)

    (status,) = web["status"]["containerStatuses"]
    assert status["lastState"]["terminated"]["exitCode"] == 3
    assert status["lastState"]["terminated"]["message"].endswith("crashed")
    assert web["status"]["phase"] == "Running"
    cluster.once_pod("web", waits_for("CrashLoopBackOff", "back-off restarting failed container c"))
    cluster.event("web", "BackOff")


def test_what_a_container_leaves_behind_ends_with_it(cluster: ClusterApi, kubelet: Kubelet) -> None:
    script = "import subprocess; print(subprocess.Popen(['sleep', '600'], process_group=0).pid)"
    cluster.create(PODS, pod("web", command=[sys.executable, "-c", script]))

    cluster.finished("web")

    assert ended(int(kubelet.log("web")))


def test_a_deleted_pods_processes_end_with_their_children_however_stubborn(
    cluster: ClusterApi, kubelet: Kubelet, pipe: Path
) -> None:
    command = ["sh", "-c", f"trap '' TERM; sleep 600 & echo $! > {pipe}; wait"]
    cluster.create(PODS, pod("web", command=command, spec={"terminationGracePeriodSeconds": 0}))
    child = int(read_from(pipe))
    cluster.ready("web")
    (process,) = kubelet.processes()

    cluster.delete(PODS, "web")

    assert ended(process)
    assert ended(child)
    kubelet.stop()
    assert kubelet.processes() == []
    assert not Path(kubelet.environment.state_dir, "logs", NAMESPACE).exists()


def test_a_container_is_asked_to_end_before_it_is_forced(cluster: ClusterApi, kubelet: Kubelet, pipe: Path) -> None:
    script = f"trap 'echo goodbye > {pipe}; exit' TERM; echo ready > {pipe}; sleep 600 & wait"
    cluster.create(PODS, pod("web", command=["sh", "-c", script]))
    assert read_from(pipe) == "ready\n"

    cluster.delete(PODS, "web")

    assert read_from(pipe) == "goodbye\n"


def test_a_kubelet_that_stops_waits_no_longer_for_a_deleted_pod(
    cluster: ClusterApi, kubelet: Kubelet, pipe: Path
) -> None:
    script = f"trap 'echo asked > {pipe}' TERM; echo ready > {pipe}; while true; do sleep 600 & wait; done"
    document = pod("web", command=["sh", "-c", script], spec={"terminationGracePeriodSeconds": 3600})
    cluster.create(PODS, document)
    assert read_from(pipe) == "ready\n"
    cluster.ready("web")
    (process,) = kubelet.processes()
    cluster.delete(PODS, "web")
    assert read_from(pipe) == "asked\n"

    kubelet.stop()

    assert ended(process)


def test_a_kubelet_that_stops_leaves_no_process_and_no_mount_and_says_so(cluster: ClusterApi, kubelet: Kubelet) -> None:
    cluster.run(pod("web", SCRATCH))
    (process,) = kubelet.processes()

    kubelet.stop()

    assert ended(process)
    assert kubelet.processes() == []
    assert list(Path(kubelet.environment.mounts_dir).iterdir()) == []
    web = cluster.get(PODS, "web")
    assert states(web) == {"c": {"waiting": {"reason": "KubeletStopped"}}}
    assert not is_ready(web)


def test_pods_have_addresses_of_their_own_and_their_own_files(cluster: ClusterApi, kubelet: Kubelet) -> None:
    for name in ("a", "b"):
        cluster.create(PODS, pod(name, SCRATCH))
    first, second = (cluster.ready(name)["status"]["podIP"] for name in ("a", "b"))

    assert first != second
    assert (kubelet.tree("a") / ".hosts").read_text() == f"127.0.0.1\tlocalhost\n{first}\ta\n"
    assert kubelet.tree("a").resolve() != kubelet.tree("b").resolve()


def test_a_pod_of_another_node_is_left_alone(cluster: ClusterApi, kubelet: Kubelet) -> None:
    cluster.create(PODS, pod("elsewhere", spec={"nodeName": "other"}))
    cluster.create(PODS, pod("here"))

    cluster.ready("here")

    assert states(cluster.get(PODS, "elsewhere")) == {}
    assert len(kubelet.processes()) == 1
