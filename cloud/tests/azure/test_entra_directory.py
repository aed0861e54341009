"""The directory's rules that no client sees at once: replication, retention, uniqueness."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.tenant.tokens import InvalidTokenError
from localcloud.core import clock
from tests.azure.graph.world import GRAPH, signed_in

ARM = "https://management.azure.com"


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
    granted = signed_in(azure, "Application.Read.All")

    assert azure.tokens.verify(azure.tokens.issue(granted, GRAPH), [GRAPH]).roles == {"Application.Read.All"}
    assert azure.tokens.verify(azure.tokens.issue(granted, ARM), [ARM]).roles == frozenset()
