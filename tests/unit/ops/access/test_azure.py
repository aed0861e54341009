"""The sign-in of a stack's deployer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from azure.core.exceptions import ClientAuthenticationError

from identity.azure import connection
from identity.azure.errors import AccessError
from ops.access import clients
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from tests.unit.ops.conftest import FakeEngine


@pytest.fixture
def sign_ins(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tenants of the sign-ins so far."""
    engine.configures(cloud="AzurePublicCloud", tenantId="t")
    tenants: list[str] = []
    monkeypatch.setattr(connection, "credential", lambda tenant, _, **__: tenants.append(tenant))
    return tenants


def sign_in(engine: Engine) -> Any:
    with clients.deployer(engine) as client:
        return client


def test_the_clients_share_one_sign_in_until_another_look_at_the_stack(sign_ins: list[str]) -> None:
    engine = Engine("dev")
    assert sign_in(engine) is not sign_in(engine)
    assert sign_ins == ["t"]

    engine.forget()
    sign_in(engine)
    assert sign_ins == ["t", "t"]


@pytest.mark.parametrize(("missing", "read"), [("tenantId", sign_in), ("subscriptionId", clients.stack_cluster)])
def test_an_incomplete_file_is_told_what_to_set(
    engine: FakeEngine, missing: str, read: Callable[[Engine], object]
) -> None:
    whole: dict[str, Any] = {"tenantId": "t", "subscriptionId": "s", "managementCluster": {"name": "aks"}}
    engine.configures(**{**whole, missing: None})

    with pytest.raises(CommandError, match=rf"has no {missing}, .* -- config set {missing} <uuid>`"):
        read(Engine("dev"))
    engine.configures(cloud="AzureGermanCloud", tenantId="t")
    with pytest.raises(AccessError, match='cloud: found "AzureGermanCloud"; accepted: AzurePublicCloud, '):
        sign_in(Engine("dev"))


@pytest.mark.parametrize("written", [{"resourceGroup": "aks"}, {"kubeconfig": "a-file"}, "aks"])
@pytest.mark.parametrize("read", [clients.stack_cluster, clients.api_server])
def test_a_management_cluster_that_is_refused_leads_to_the_report(
    engine: FakeEngine, written: Any, read: Callable[[Engine], object]
) -> None:
    engine.configures(tenantId="t", subscriptionId="s", managementCluster=written)

    with pytest.raises(
        CommandError, match=r"^idstack:managementCluster is not valid; `.venv/bin/idstack preview --stack dev`"
    ):
        read(Engine("dev"))


def test_a_sign_in_is_tried_once_and_its_refusal_is_one_line(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        scopes: ClassVar[list[str]] = []

        def get_token(self, scope: str) -> None:
            self.scopes.append(scope)
            raise ClientAuthenticationError("AADSTS700082:\n expired")

    engine.configures(cloud="AzurePublicCloud", tenantId="t")
    monkeypatch.setattr(connection, "credential", lambda *_, **__: Refusing())

    assert clients.sign_in_refusal(Engine("dev")) == "AADSTS700082: expired"
    assert Refusing.scopes == ["https://management.core.windows.net//.default"]
