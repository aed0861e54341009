"""What a kubelet is asked of a pod: the log of a container, and a command beside it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import stream, ws_client

from localcloud.core.files import opened
from localcloud.core.processes import record
from localcloud.kubernetes.pod_output import MOUNT_ROOT_VARIABLE
from localcloud.testing.kubernetes import deployment, model, refusal

NAMESPACE = "default"
MOUNT = {"name": "certs", "mountPath": "/mnt/certs"}


def pod(name: str, *containers: str) -> client.V1Pod:
    spec = deployment()["spec"]["template"]["spec"]
    [one] = spec["containers"]
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            **spec,
            "volumes": [{"name": MOUNT["name"], "emptyDir": {}}],
            "containers": [{**one, "name": container, "volumeMounts": [MOUNT]} for container in containers],
        },
    }
    return model(client.V1Pod, document)


@pytest.fixture
def core(official: client.ApiClient, tmp_path: Path) -> client.CoreV1Api:
    """With a pod of one container, which has written a log, and one of two."""
    core = client.CoreV1Api(official)
    core.create_namespaced_pod(NAMESPACE, pod("web", "c"))
    core.create_namespaced_pod(NAMESPACE, pod("two", "a", "b"))
    log = tmp_path / "logs" / NAMESPACE / "web" / "c.log"
    log.parent.mkdir(parents=True)
    log.write_text("one\ntwo\nthree\n")
    return core


def test_the_log_of_a_container_is_its_output(core: client.CoreV1Api) -> None:
    assert core.read_namespaced_pod_log("web", NAMESPACE) == "one\ntwo\nthree\n"
    assert core.read_namespaced_pod_log("web", NAMESPACE, container="c", tail_lines=2) == "two\nthree\n"
    assert core.read_namespaced_pod_log("web", NAMESPACE, previous=True, limit_bytes=5) == "one\nt"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("two", {}, "a container name must be specified for pod two, choose one of: [a b]"),
        ("two", {"container": "x"}, "container x is not valid for pod two"),
        ("two", {"container": "a"}, 'container "a" in pod "two" is waiting to start: ContainerCreating'),
        ("web", {"since_seconds": 1}, "does not emulate sinceSeconds of a log: the whole output is in {log}"),
        ("none", {}, 'pods "none" not found'),
    ],
)
def test_a_log_that_there_is_not_is_refused(
    core: client.CoreV1Api, tmp_path: Path, name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ApiException) as raised:
        core.read_namespaced_pod_log(name, NAMESPACE, **options)

    assert message.format(log=tmp_path / "logs" / NAMESPACE / "web" / "c.log") in refusal(raised)[2]


def test_a_followed_log_ends_with_its_container(core: client.CoreV1Api, tmp_path: Path, running: Path) -> None:
    assert running
    [process] = (tmp_path / "pids").iterdir()
    answer = core.read_namespaced_pod_log("web", NAMESPACE, follow=True, tail_lines=1, _preload_content=False)
    followed: Iterator[bytes] = answer.stream()  # type: ignore[attr-defined]  # an HTTPResponse with that option
    read = next(followed)
    with (tmp_path / "logs" / NAMESPACE / "web/c.log").open("a") as log:
        log.write("four\n")
    read += next(followed)
    os.kill(json.loads(process.read_text())["pid"], signal.SIGKILL)

    assert read + b"".join(followed) == b"three\nfour\n"


@pytest.fixture
def running(core: client.CoreV1Api, tmp_path: Path) -> Iterator[Path]:
    """The container `c` of `web` runs; the tree with the files of its mount /mnt/certs."""
    tree = tmp_path / "run/mounts" / NAMESPACE / ".web/c"
    (tree / "mnt/certs").mkdir(parents=True)
    (tree / "mnt/certs/one").write_text("a credential")
    environment = {"PATH": "/usr/bin:/bin", "NAME": "value", MOUNT_ROOT_VARIABLE: str(tree)}
    with subprocess.Popen(["sleep", "infinity"], env=environment) as process:
        record(tmp_path / "pids", f"probe-{NAMESPACE}-web-c", process.pid)
        yield tree
        process.kill()


def execute(core: client.CoreV1Api, *command: str, **options: Any) -> ws_client.WSClient:
    called = stream(
        core.connect_get_namespaced_pod_exec, "web", NAMESPACE, command=command, _preload_content=False, **options
    )
    assert isinstance(called, ws_client.WSClient)
    return called


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize(
    ("command", "output", "error", "code"),
    [
        (["ls", "/mnt/certs"], "one\n", "", 0),
        (["cat", "/mnt/certs/one"], "a credential", "", 0),
        (["sh", "-c", "echo $NAME; echo bad >&2; exit 3"], "value\n", "bad\n", 3),
    ],
)
def test_a_command_runs_with_the_variables_and_files_of_its_container(
    core: client.CoreV1Api, command: list[str], output: str, error: str, code: int
) -> None:
    called = execute(core, *command, stdout=True, stderr=True)
    called.run_forever(timeout=30)

    assert (called.read_stdout(), called.read_stderr(), called.returncode) == (output, error, code)


@pytest.mark.usefixtures("running")
def test_a_command_reads_what_the_client_writes_and_ends_with_the_client(core: client.CoreV1Api) -> None:
    called = execute(core, "sh", "-c", "read word; echo $$ $word; exec sleep infinity", stdin=True, stdout=True)
    called.write_stdin("hello\n")
    pid, word = called.readline_stdout(timeout=30).split()
    with opened(os.pidfd_open(int(pid))) as handle:
        called.close()

        assert word == "hello"
        assert select.select([handle], [], [], 30)[0]


@pytest.mark.usefixtures("running")
def test_a_program_that_is_not_there_is_the_error_of_its_command(core: client.CoreV1Api) -> None:
    called = execute(core, "no-such-program")
    called.run_forever(timeout=30)

    assert "no-such-program" in json.loads(called.read_channel(ws_client.ERROR_CHANNEL))["message"]


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize(("asked", "options"), [("exec", {"command": ["ls"]}), ("attach", {}), ("portforward", {})])
def test_what_needs_spdy_is_refused_with_the_pods_address_and_folder(
    core: client.CoreV1Api, tmp_path: Path, asked: str, options: dict[str, Any]
) -> None:
    core.patch_namespaced_pod_status("web", NAMESPACE, {"status": {"podIP": "127.207.0.1"}})

    with pytest.raises(ApiException) as raised:
        getattr(core, f"connect_post_namespaced_pod_{asked}")("web", NAMESPACE, **options)

    code, reason, message = refusal(raised)
    assert (code, reason) == (501, "NotEmulated")
    assert f"the address 127.207.0.1, the files of its pod in {tmp_path}/run/mounts/{NAMESPACE}/.web" in message
    assert f"{tmp_path}/logs/{NAMESPACE}/web" in message


@pytest.mark.parametrize(
    ("name", "command", "status"),
    [("web", ["ls"], "500"), ("none", ["ls"], "404"), ("two", ["ls"], "400")],
    ids=["no container runs", "no pod", "two containers"],
)
def test_a_command_without_its_container_is_refused(
    core: client.CoreV1Api, name: str, command: list[str], status: str
) -> None:
    with pytest.raises(ApiException, match=f"Handshake status {status}"):
        stream(core.connect_get_namespaced_pod_exec, name, NAMESPACE, command=command)


@pytest.mark.usefixtures("running")
def test_a_command_has_a_terminal_on_request(core: client.CoreV1Api) -> None:
    called = execute(core, "sh", "-c", "test -t 0 && ls /mnt/certs; exit 3", stdin=True, stdout=True, tty=True)
    called.run_forever(timeout=30)

    assert (called.read_stdout(), called.returncode) == ("one\r\n", 3)


@pytest.mark.usefixtures("running")
def test_a_command_needs_the_bearer(core: client.CoreV1Api) -> None:
    core.api_client.configuration.api_key = {}
    with pytest.raises(ApiException, match="Handshake status 401"):
        execute(core, "ls")
