"""What a kubelet is asked of a pod: its log is answered, a command in it is refused with the places to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from localcloud.testing.kubernetes import deployment, model, refusal

NAMESPACE = "default"


def pod(name: str, *containers: str) -> client.V1Pod:
    spec = deployment()["spec"]["template"]["spec"]
    [one] = spec["containers"]
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {**spec, "containers": [{**one, "name": container} for container in containers]},
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
        ("web", {"follow": True}, "The local cloud does not emulate follow of a log: use tail -f {log}"),
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


@pytest.mark.parametrize("asked", ["exec", "attach", "portforward"])
def test_a_command_in_a_pod_is_refused_with_its_folder(core: client.CoreV1Api, tmp_path: Path, asked: str) -> None:
    with pytest.raises(ApiException) as raised:
        getattr(core, f"connect_post_namespaced_pod_{asked}")("web", NAMESPACE)

    code, reason, message = refusal(raised)
    assert (code, reason) == (501, "NotEmulated")
    assert f"{tmp_path}/run/mounts/{NAMESPACE}/.web" in message
    assert f"{tmp_path}/logs/{NAMESPACE}/web" in message
