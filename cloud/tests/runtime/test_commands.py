"""The commands on a local cloud that runs: `contents`, `start`, `requests` and `pods`."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from localcloud.apiserver.apply import NotAppliedError, apply_pods
from localcloud.core.clouds import LocalEnvironment
from localcloud.core.state_directory import StateDirectory
from localcloud.testing.kubernetes import RunningApi, client_of, deployment, write_kubeconfig
from tests.source import PACKAGES


def test_each_document_is_a_line_with_kind_and_key(local_cloud: LocalEnvironment) -> None:
    command = [sys.executable, "-m", "localcloud", "--state-dir", local_cloud.state_dir, "contents"]
    done = subprocess.run(command, cwd=PACKAGES, capture_output=True, text=True, check=True)
    found = [tuple(json.loads(line)) for line in done.stdout.splitlines()]

    assert ("deployer", "deployer") in found
    assert any(kind == "arm" and key.startswith("/subscriptions/") for kind, key in found)
    assert found == sorted(set(found))


def test_a_start_of_a_cloud_that_runs_imports_none_of_its_services(local_cloud: LocalEnvironment) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "localcloud", "--state-dir", local_cloud.state_dir, "start"]
    done = subprocess.run(command, cwd=PACKAGES, capture_output=True, text=True, check=True)

    assert "runs already" in done.stdout
    assert "seeded already" in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "localcloud.runtime.lifecycle" in imported
    assert {name for name in imported if name.startswith(("localcloud.azure", "starlette", "uvicorn", "jwt"))} == set()


def test_a_seed_is_asked_for_by_post_alone(local_cloud: LocalEnvironment) -> None:
    with httpx.Client(base_url=local_cloud.control_endpoint, trust_env=False) as client:
        assert client.get("/seed").status_code == httpx.codes.METHOD_NOT_ALLOWED
        assert client.post("/seed").json() == {"added": 0}


@pytest.fixture(scope="module")
def asked(local_cloud: LocalEnvironment) -> LocalEnvironment:
    """A local cloud that one client asked two things, and another one a third."""
    context = ssl.create_default_context(cafile=local_cloud.ca_file)
    for client, service, path in (("one/1.0", "arm", "/tenants"), ("one/1.0", "entra", "/a"), ("two", "arm", "/b")):
        base = {"arm": local_cloud.arm_endpoint, "entra": local_cloud.authority_host.rstrip("/")}[service]
        httpx.get(f"{base}{path}", headers={"User-Agent": f"{client} (Linux)"}, verify=context)
    return local_cloud


def printed(asked: LocalEnvironment, *options: str) -> list[str]:
    line = [sys.executable, "-m", "localcloud", "--state-dir", asked.state_dir, "requests", *options]
    done = subprocess.run(line, cwd=PACKAGES, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_request_is_a_line_with_the_clients_product(asked: LocalEnvironment) -> None:
    [line] = printed(asked, "--client", "TWO")

    assert line.split()[1:] == ["arm", "400", "GET", "/b", "two"]


@pytest.mark.parametrize(
    ("client", "option", "paths"),
    [("one/1.0", ("--service", "entra"), ["/a"]), ("(linux)", ("--last", "2"), ["/a", "/b"])],
    ids=["of one service", "the newest"],
)
def test_some_requests_are_printed(
    asked: LocalEnvironment, client: str, option: tuple[str, str], paths: list[str]
) -> None:
    assert [json.loads(line)["path"] for line in printed(asked, "--client", client, *option, "--json")] == paths


def group(*names: str) -> list[dict[str, Any]]:
    """A namespace, and a Deployment in it for each name."""
    placed = [
        {**made, "metadata": {**made["metadata"], "namespace": "clusters-hc2"}} for made in map(deployment, names)
    ]
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters-hc2"}}, *placed] if names else []


@pytest.fixture
def state(api: RunningApi, tmp_path: Path) -> StateDirectory:
    """Of a local cloud whose Kubernetes API is the test's."""
    made = StateDirectory(tmp_path / "state")
    made.run.mkdir(parents=True)
    write_kubeconfig(made.kubeconfig, api.server, api.ca_file)
    return made


def deployed(state: StateDirectory) -> list[str]:
    """The Deployments in living namespaces."""
    with client_of(state.kubeconfig) as http:
        listed = http.get("/apis/apps/v1/deployments").raise_for_status().json()["items"]
        alive = {item["metadata"]["name"] for item in http.get("/api/v1/namespaces").raise_for_status().json()["items"]}
    return sorted(item["metadata"]["name"] for item in listed if item["metadata"]["namespace"] in alive)


def test_what_a_group_asks_for_no_more_goes(state: StateDirectory) -> None:
    apply_pods(state, "local", group("one", "two"))
    apply_pods(state, "local", group("two"))
    assert deployed(state) == ["two"]

    apply_pods(state, "local", [])
    assert deployed(state) == []


@pytest.mark.parametrize(
    ("calls", "left"),
    [
        ([("other", group("one")), ("local", group("two")[1:]), ("local", [])], ["one"]),
        ([("local", group("one")), ("other", group("one")), ("other", []), ("local", [])], []),
    ],
    ids=["another group's pods stay", "what somebody deleted meanwhile is no error"],
)
def test_a_group_is_one_of_several(
    state: StateDirectory, calls: list[tuple[str, list[dict[str, Any]]]], left: list[str]
) -> None:
    for name, documents in calls:
        apply_pods(state, name, documents)

    assert deployed(state) == left


def test_what_a_refused_call_had_applied_goes_with_the_next(state: StateDirectory, api: RunningApi) -> None:
    bad = {**group("two")[1], "spec": {}}
    with pytest.raises(NotAppliedError, match=r"^PATCH /apis/apps/v1/.*/deployments/two at .* 422"):
        apply_pods(state, "local", [*group("one"), bad])
    assert deployed(state) == ["one"]

    apply_pods(state, "local", [])
    assert deployed(state) == []


def test_the_command_reads_standard_input_and_refuses_what_it_cannot_place(local_cloud: LocalEnvironment) -> None:
    command = [sys.executable, "-m", "localcloud", "--state-dir", local_cloud.state_dir, "pods", "test"]

    def run(text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=PACKAGES, input=text, capture_output=True, text=True, check=False)

    assert run("[]").returncode == 0
    for text in ("{", '{"kind": "Deployment"}', json.dumps([{"kind": "Pod", "metadata": {"name": "one"}}])):
        refused = run(text)
        assert refused.returncode == 1
        assert "is not a JSON list of Namespaces and Deployments" in refused.stderr
