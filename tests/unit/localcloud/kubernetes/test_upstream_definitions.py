"""The local definitions beside those that a cluster gets: HyperShift's and the Secrets Store CSI driver's.

They are read out of the Go modules of their releases, which are downloaded once, and stored nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from yaml import CSafeLoader, load

from localcloud.kubernetes.definitions import Definition, definitions, version
from tools import clients

_AZURE: Final = "cmd/install/assets/crds/cluster-api-provider-azure"
_DRIVER: Final = "config/crd/bases"
# What `kubectl get` prints and what the fields mean decides about no object.
_WORDS: Final = "description"


def local(plural: str) -> Definition:
    return next(each for each in definitions() if each["spec"]["names"]["plural"] == plural)


def upstreams(plural: str) -> Definition:
    file = {
        "azureclusteridentities": lambda: clients.hypershift() / _AZURE / "infrastructure.cluster.x-k8s.io_{}.yaml",
        "secretproviderclasses": lambda: clients.csi_driver() / _DRIVER / "secrets-store.csi.x-k8s.io_{}.yaml",
        "secretproviderclasspodstatuses": lambda: clients.csi_driver() / _DRIVER / "secrets-store.csi.x-k8s.io_{}.yaml",
    }[plural]()
    found: Definition = load(Path(str(file).format(plural)).read_bytes(), CSafeLoader)
    return found


def rules(schema: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Each rule of a schema, with the path of what it is about; the order of a list of names means nothing."""
    for name, value in schema.items():
        if name == "properties":
            for key, each in value.items():
                yield f"{path}.{key}", "is known"
                yield from rules(each, f"{path}.{key}")
        elif name in ("items", "additionalProperties") and isinstance(value, dict):
            yield from rules(value, f"{path}[]")
        elif name != _WORDS:
            yield path, f"{name}: {sorted(value) if name in ('required', 'enum') else value}"


@pytest.mark.parametrize(
    "plural", ["azureclusteridentities", "secretproviderclasses", "secretproviderclasspodstatuses"]
)
def test_a_local_definition_is_as_strict_as_the_real_one(plural: str) -> None:
    mine, real = local(plural), upstreams(plural)
    served = version(mine)
    theirs = next(each for each in real["spec"]["versions"] if each["name"] == served["name"])

    assert set(rules(served["schema"]["openAPIV3Schema"])) == set(rules(theirs["schema"]["openAPIV3Schema"]))
    assert served.get("subresources") == theirs.get("subresources")
    assert (theirs["served"], theirs["storage"]) == (True, True)
    assert {mine["spec"][part] for part in ("group", "scope")} == {real["spec"][part] for part in ("group", "scope")}
    assert mine["spec"]["names"] == real["spec"]["names"]


def test_a_rule_that_differs_is_found() -> None:
    schema = {"type": "object", "required": ["b", "a"], "properties": {"a": {"type": "string", "maxLength": 3}}}

    assert set(rules(schema)) == {
        ("", "type: object"),
        ("", "required: ['a', 'b']"),
        (".a", "is known"),
        (".a", "type: string"),
        (".a", "maxLength: 3"),
    }
