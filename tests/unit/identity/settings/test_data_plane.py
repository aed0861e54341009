"""Data-plane identities that existed before the stack, under names of their own."""

from __future__ import annotations

from typing import Any

import pytest

from identity.catalogue import DATA_PLANE
from identity.naming import data_plane_identity_name
from identity.settings.schema.model import managed_identity_of
from tests.unit.identity.settings.world import configuration, load, refusals

ROW = DATA_PLANE[0]
PLACE = f"hostedClusters[0].dataPlaneIdentities.{ROW.field}"


def existing(**settings: Any) -> dict[str, Any]:
    return configuration(hostedClusters__0__dataPlaneIdentities={ROW.field: settings})


def test_an_identity_without_settings_has_the_name_that_hypershift_gives() -> None:
    settings = load(configuration())
    cluster = settings.hosted_clusters[0]

    names = [managed_identity_of(settings, cluster, row).rpartition("/")[2] for row in DATA_PLANE]

    assert names == [data_plane_identity_name(cluster.name, row.name, cluster.infra_id) for row in DATA_PLANE]


def test_an_identity_keeps_the_name_that_it_has() -> None:
    settings = load(existing(name="image-registry-MI-x"))

    found = [managed_identity_of(settings, settings.hosted_clusters[0], row).rpartition("/")[2] for row in DATA_PLANE]

    assert found[0] == "image-registry-MI-x"
    assert "image-registry-MI-x" not in found[1:]


@pytest.mark.parametrize(
    ("settings", "place", "rule"),
    [
        ({"name": "a b c"}, ".name", "managed-identity-name"),
        ({"location": "East US"}, ".location", "location"),
        ({"federatedCredentials": {"registry": "a"}}, ".federatedCredentials.registry", "federated-credential-name"),
        ({"federatedCredentials": {"nod": "abc"}}, ".federatedCredentials.nod", "federated-suffix"),
        (
            {"federatedCredentials": {"node": "abc"}},
            ".federatedCredentials.node",
            "federated-credential-of-other-identity",
        ),
    ],
)
def test_a_setting_that_does_not_fit_is_refused(settings: dict[str, Any], place: str, rule: str) -> None:
    assert refusals(existing(**settings)) == [(f"{PLACE}{place}", rule)]


def test_an_identity_is_one_of_the_catalogues() -> None:
    unknown = configuration(hostedClusters__0__dataPlaneIdentities={"diskMSI": {}})

    assert refusals(unknown) == [("hostedClusters[0].dataPlaneIdentities.diskMSI", "data-plane-field")]
