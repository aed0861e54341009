"""The built-in API takes and refuses HostedClusters as kube-apiserver does, but for the rules in CEL."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.kubernetes import schemas
from localcloud.kubernetes.definitions import definitions
from localcloud.kubernetes.kinds import KINDS
from localcloud.testing.hosted_clusters import (
    ABSENT,
    INVALID_CHANGES,
    UNKNOWN_FIELDS,
    VALID_CHANGES,
    InvalidChange,
    changed,
    hosted_cluster,
)

_KIND = next(kind for kind in KINDS if kind.kind == "HostedCluster")
_WITHOUT_CEL = [bad for bad in INVALID_CHANGES if not bad.is_cel]


def refusals(document: dict[str, Any]) -> list[str]:
    _, findings = schemas.check(_KIND, document)
    return [f"{cause.field}: {cause.message}" for cause in findings.causes]


def test_every_definition_serves_one_version() -> None:
    for definition in definitions():
        names = definition["spec"]["names"]
        assert definition["metadata"]["name"] == f"{names['plural']}.{definition['spec']['group']}"
        assert [(version["served"], version["storage"]) for version in definition["spec"]["versions"]] == [(True, True)]


@pytest.mark.parametrize(("path", "value"), VALID_CHANGES, ids=[path for path, _ in VALID_CHANGES])
def test_a_good_document_is_taken(path: str, value: Any) -> None:
    assert refusals(changed(hosted_cluster(), path, value)) == []


@pytest.mark.parametrize("bad", _WITHOUT_CEL, ids=lambda bad: bad.name)
def test_a_bad_document_is_refused_in_the_api_servers_words(bad: InvalidChange) -> None:
    assert bad.refusal in refusals(changed(hosted_cluster(), bad.path, bad.value))


@pytest.mark.parametrize("field", UNKNOWN_FIELDS)
def test_an_unknown_field_is_found(field: str) -> None:
    _, findings = schemas.check(_KIND, changed(hosted_cluster(), field, "x"))

    assert findings.unknown == [field]


def test_defaults_are_filled_in() -> None:
    group = "spec.platform.azure.resourceGroup"

    taken, findings = schemas.check(_KIND, changed(hosted_cluster(), group, ABSENT))

    assert findings.causes == []
    assert taken["spec"]["platform"]["azure"]["resourceGroup"] == "default"
