"""The directory's rules that no client sees at once: replication, retention, uniqueness."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.shared.faults import Faults
from localcloud.azure.shared.http import ServiceError
from localcloud.azure.tenant.directory import Directory
from localcloud.azure.tenant.tokens import InvalidTokenError
from localcloud.core import clock
from localcloud.core.store import Store

ARM = "https://management.azure.com"


def test_a_new_principal_is_found_only_after_its_delay(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.sqlite", bytes(32))
    directory = Directory(store, Faults(principal_delay=30))
    identity = directory.create_managed_identity("/subscriptions/s/x", "identity")

    assert not directory.is_replicated(identity.object_id)
    with clock.moved_ahead(timedelta(seconds=31)):
        assert directory.is_replicated(identity.object_id)
    assert not directory.is_replicated("nobody")
    store.close()


def test_a_deleted_application_is_kept_for_thirty_days(azure: LocalAzure) -> None:
    application = azure.directory.create_application("app")
    azure.directory.delete_application(application.object_id)

    with clock.moved_ahead(timedelta(days=29)):
        assert [deleted.entry for deleted in azure.directory.deleted()] == [application]
    with clock.moved_ahead(timedelta(days=31)):
        assert azure.directory.restore(application.object_id) is None


def test_a_managed_identitys_principal_is_gone_at_once(azure: LocalAzure) -> None:
    identity = azure.directory.create_managed_identity("/subscriptions/s/x", "identity")

    assert azure.directory.delete_service_principal(identity.object_id)
    assert azure.directory.service_principal_by_app(identity.app_id) is None
    assert azure.directory.deleted() == []


def test_a_service_principal_needs_an_application(azure: LocalAzure) -> None:
    with pytest.raises(ServiceError, match="NoBackingApplicationObject"):
        azure.directory.create_service_principal("00000000-0000-0000-0000-000000000000")


def test_a_token_is_valid_for_its_audience_and_dates_only(azure: LocalAzure) -> None:
    identity = azure.directory.create_managed_identity("/subscriptions/s/x", "identity")
    token = azure.tokens.issue(identity, ARM, lifetime=timedelta(hours=1))

    assert azure.tokens.verify(token, [ARM]).object_id == identity.object_id
    with pytest.raises(InvalidTokenError, match="audience"):
        azure.tokens.verify(token, ["https://vault.azure.net"])
    with pytest.raises(InvalidTokenError, match="invalid"):
        azure.tokens.verify(f"{token[:-6]}AAAAAA", [ARM])
    with clock.moved_ahead(timedelta(hours=2)), pytest.raises(InvalidTokenError, match="expiry"):
        azure.tokens.verify(token, [ARM])


def test_graph_permissions_are_in_graphs_tokens_only(azure: LocalAzure) -> None:
    application = azure.directory.create_application("app")
    principal = azure.directory.create_service_principal(application.app_id)
    azure.directory.grant(principal.object_id, "Application.Read.All")
    granted = azure.directory.service_principal(principal.object_id)
    assert granted is not None

    graph = "https://graph.microsoft.com"
    assert azure.tokens.verify(azure.tokens.issue(granted, graph), [graph]).roles == {"Application.Read.All"}
    assert azure.tokens.verify(azure.tokens.issue(granted, ARM), [ARM]).roles == frozenset()
