"""The management cluster as the recovery reaches it: by a kubeconfig file, or as the stack does."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from identity.access.azure_rbac import AksCluster
from identity.access.kubeconfig import Kubeconfig
from identity.access.legacy_login import LegacyLogin
from ops.access.management_cluster import StackAccess
from ops.recovery import settle
from ops.recovery.kubernetes_objects import connected
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from tests.unit.hosts import Certificates
from tests.unit.ops.conftest import FakeEngine


def test_a_cluster_that_does_not_answer_is_reported(tmp_path: Path, kubeconfig: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text(kubeconfig.read_text().replace("https://127.0.0.1:", "https://127.0.0.2:"))
    with pytest.raises(CommandError, match=r"management cluster of .*silent cannot be read"), connected(silent, None):
        pass


def test_a_context_that_the_kubeconfig_does_not_have_is_reported(kubeconfig: Path) -> None:
    with pytest.raises(CommandError, match=r"cannot be read.*nowhere"), connected(kubeconfig, "nowhere"):
        pass


def test_without_a_kubeconfig_file_recovery_signs_in_as_the_stack_does(
    kubeconfig: Path, certificates: Certificates, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = base64.b64encode(certificates.ca_file.read_bytes()).decode()
    text = kubeconfig.read_text().replace(
        f"certificate-authority: {certificates.ca_file}", f"certificate-authority-data: {authority}"
    )
    known = Kubeconfig.parse(text, "AKS's")
    asked: list[str] = []

    def as_the_stack(of: Engine) -> StackAccess:
        asked.append(of.stack)
        return StackAccess(known, LegacyLogin(), AksCluster("/id"))

    monkeypatch.setattr(settle, "stack_access", as_the_stack)
    configuration = {"managementCluster": '{"resourceGroup": "aks", "name": "aks"}'}
    with settle._management_cluster(Engine("dev"), configuration) as found:
        assert found.has("v1", "Namespace", None, "default")
        assert not found.has("v1", "Namespace", None, "clusters-hc1")
    assert asked == ["dev"]

    known = known.only(known.chosen(), user={"token": "wrong"})
    with (
        pytest.raises(CommandError, match="does not accept the token"),
        settle._management_cluster(Engine("dev"), configuration),
    ):
        pass

    named = {"managementCluster": json.dumps({"kubeconfig": str(kubeconfig)})}
    with settle._management_cluster(Engine("dev"), named) as found:
        assert found.has("v1", "Namespace", None, "default")
    assert asked == ["dev", "dev"], "a file that is named goes first"
