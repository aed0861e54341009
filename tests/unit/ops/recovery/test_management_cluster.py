"""The management cluster as the recovery reaches it: by a kubeconfig file, or as the stack does."""

from __future__ import annotations

import base64
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import pytest

from identity.aks.azure_rbac import AksCluster
from identity.aks.kubeconfig import Kubeconfig
from identity.aks.legacy_login import LegacyLogin
from identity.azure.errors import AccessError, AzureRefusedError
from localcloud.testing.hosts import Certificates
from ops.access.clients import KubernetesObjects, StackAccess, management_cluster
from ops.stack.engine import Engine
from tests.unit.ops.conftest import FakeEngine

AKS: Final = {"resourceGroup": "aks", "name": "aks"}


def by_file(engine: FakeEngine, kubeconfig: Path, **more: str) -> AbstractContextManager[KubernetesObjects]:
    """The cluster of a stack whose configuration names this file."""
    engine.configures(subscriptionId="a-subscription", managementCluster={**AKS, "kubeconfig": str(kubeconfig), **more})
    return management_cluster(Engine("dev"))


def test_a_cluster_that_does_not_answer_is_reported(tmp_path: Path, kubeconfig: Path, engine: FakeEngine) -> None:
    silent = tmp_path / "silent"
    silent.write_text(kubeconfig.read_text().replace("https://127.0.0.1:", "https://127.0.0.2:"))
    reason = r"the API server at https://127\.0\.0\.2.* cannot be reached"
    with pytest.raises(AccessError, match=reason), by_file(engine, silent):
        pass


def test_a_refusal_of_azure_is_not_taken_for_one_of_the_cluster(kubeconfig: Path, engine: FakeEngine) -> None:
    with pytest.raises(AzureRefusedError, match=r"^no role$"), by_file(engine, kubeconfig):
        raise AzureRefusedError("no role")


def test_a_context_that_the_kubeconfig_does_not_have_is_reported(kubeconfig: Path, engine: FakeEngine) -> None:
    with pytest.raises(AccessError, match="nowhere"), by_file(engine, kubeconfig, context="nowhere"):
        pass


def test_a_kind_that_is_not_served_has_no_object(cluster: KubernetesObjects) -> None:
    assert cluster.has("v1", "Namespace", None, "default")
    assert not cluster.has("v1", "Other", "default", "one")
    assert not cluster.has("other.example/v1", "Other", "default", "one")


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

    monkeypatch.setattr("ops.access.clients.stack_access", as_the_stack)
    engine.configures(managementCluster=AKS)
    with management_cluster(Engine("dev")) as found:
        assert found.has("v1", "Namespace", None, "default")
        assert not found.has("v1", "Namespace", None, "clusters-hc1")
    assert asked == ["dev"]

    known = known.only(known.chosen(), user={"token": "wrong"})
    with (
        pytest.raises(AccessError, match="does not accept the token"),
        management_cluster(Engine("dev")),
    ):
        pass

    with by_file(engine, kubeconfig) as found:
        assert found.has("v1", "Namespace", None, "default")
    assert asked == ["dev", "dev"], "a file that is named goes first"
