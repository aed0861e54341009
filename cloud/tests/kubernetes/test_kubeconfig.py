"""Which cluster a kubeconfig leads to, and which kubeconfigs lead nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from localcloud.kubernetes.kubeconfig import InvalidKubeconfigError, connection, servers
from localcloud.testing.kubernetes import write_kubeconfig


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    (tmp_path / "ca.pem").write_text("CA")
    return write_kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:6443/", tmp_path / "ca.pem")


def test_a_path_and_its_text_lead_to_the_same_cluster(kubeconfig: Path) -> None:
    by_text = connection(kubeconfig.read_text())

    assert connection(str(kubeconfig)) == by_text
    assert (by_text.server, by_text.ca, by_text.namespace) == ("https://127.0.0.1:6443", "CA", "default")
    assert servers(kubeconfig.read_text()) == {"https://127.0.0.1:6443"}


def test_a_connection_shows_no_token(kubeconfig: Path) -> None:
    assert repr(connection(str(kubeconfig))) == "Connection(https://127.0.0.1:6443)"


def test_an_unknown_context_names_the_known_ones(kubeconfig: Path) -> None:
    with pytest.raises(InvalidKubeconfigError, match='no context "prod"; it has local'):
        connection(str(kubeconfig), "prod")


def with_user(kubeconfig: Path, user: dict[str, Any]) -> str:
    document = yaml.safe_load(kubeconfig.read_text())
    document["users"][0]["user"] = user
    return yaml.safe_dump(document)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"auth-provider": {"name": "azure"}}, "The azure auth plugin has been removed"),
        ({"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}}, "invalid apiVersion"),
        ({"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}}, "interactiveMode must be"),
    ],
)
def test_a_user_that_client_go_refuses_is_refused(kubeconfig: Path, user: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        connection(with_user(kubeconfig, user))


def plugin(kubeconfig: Path, script: str) -> httpx.Client:
    """A client that signs in by a shell script and is answered what it sent; `refused` is not accepted."""
    (kubeconfig.parent / "plugin").write_text(f"#!/bin/sh\necho run >> {kubeconfig.parent}/runs\n{script}\n")
    (kubeconfig.parent / "plugin").chmod(0o755)
    block = {
        "command": str(kubeconfig.parent / "plugin"),
        "args": ["a"],
        "env": [{"name": "TOKEN", "value": "from-env"}],
        "apiVersion": "client.authentication.k8s.io/v1",
        "interactiveMode": "Never",
        "installHint": "install it",
    }

    def answer(request: httpx.Request) -> httpx.Response:
        token = request.headers["Authorization"]
        return httpx.Response(401 if token == "Bearer refused" else 200, text=token)

    auth = connection(with_user(kubeconfig, {"exec": block})).plugin
    return httpx.Client(auth=auth, transport=httpx.MockTransport(answer), base_url="https://api")


def printed(token: str, expires: str = "2100-01-01T00:00:00Z") -> str:
    status = f'{{"token": "{token}", "expirationTimestamp": "{expires}"}}'
    return f"""echo '{{"apiVersion": "client.authentication.k8s.io/v1", "status": {status}}}'"""


def runs(kubeconfig: Path) -> int:
    return len((kubeconfig.parent / "runs").read_text().splitlines())


def test_a_plugins_token_is_used_until_it_expires(kubeconfig: Path) -> None:
    with plugin(kubeconfig, printed("token")) as http:
        assert [http.get("/").text for _ in range(3)] == ["Bearer token"] * 3
        assert runs(kubeconfig) == 1
    with plugin(kubeconfig, printed("token", "2020-01-01T00:00:00Z")) as http:
        assert [http.get("/").text for _ in range(2)] == ["Bearer token"] * 2
        assert runs(kubeconfig) == 3


def test_after_a_refused_token_the_next_request_gets_a_new_one(kubeconfig: Path) -> None:
    with plugin(kubeconfig, printed("refused")) as http:
        assert [http.get("/").status_code for _ in range(2)] == [401, 401]
        assert runs(kubeconfig) == 2


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo reason >&2; exit 3", "failed with exit code 3$"),
        ("echo nonsense", "no ExecCredential with a token"),
        ("""echo '{"apiVersion": "x", "status": {"token": "t"}}'""", "plugin returned version x, expected client"),
    ],
)
def test_a_failing_plugin_has_client_gos_error_message(kubeconfig: Path, script: str, expected: str) -> None:
    with plugin(kubeconfig, script) as http, pytest.raises(httpx.RequestError, match=expected) as caught:
        http.get("/")
    assert "reason" not in str(caught.value)


def test_a_path_to_nothing_is_refused() -> None:
    with pytest.raises(InvalidKubeconfigError, match="neither a kubeconfig nor the path of an existing file"):
        connection("/nowhere/kubeconfig")
