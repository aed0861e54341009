"""Which cluster a kubeconfig leads to, and which kubeconfigs lead nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from localcloud.kubernetes.kubeconfig import InvalidKubeconfig, connection, servers
from tests.unit.localcloud.kubernetes_world import write_kubeconfig


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
    with pytest.raises(InvalidKubeconfig, match='no context "prod"; it has local'):
        connection(str(kubeconfig), "prod")


def test_an_exec_plugin_is_refused(kubeconfig: Path) -> None:
    document = yaml.safe_load(kubeconfig.read_text())
    document["users"][0]["user"] = {"exec": {"command": "kubelogin"}}

    with pytest.raises(InvalidKubeconfig, match="signs in by exec"):
        connection(yaml.safe_dump(document))


def test_a_path_to_nothing_is_refused() -> None:
    with pytest.raises(InvalidKubeconfig, match="neither a kubeconfig's text nor the path of an existing file"):
        connection("/nowhere/kubeconfig")
