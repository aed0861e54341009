"""The local definitions beside those that a cluster gets: HyperShift's and the Secrets Store CSI driver's.

They are read out of the Go modules of their releases, which are downloaded once, and stored nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from yaml import CSafeLoader, load

from localcloud.kubernetes.definitions import Definition, definitions, version
from tools import clients

_AZURE: Final = "cmd/install/assets/crds/cluster-api-provider-azure"
_DRIVER: Final = "config/crd/bases"
_OPERATOR: Final = "cmd/install/assets/crds/hypershift-operator/zz_generated.crd-manifests"
# What fields mean and how they are called decides about no object.
_WORDS: Final = "description"
# Parts of a HostedCluster which the stack does not write, and of which the local definition knows less, or nothing.
_NOT_WRITTEN: Final = frozenset(
    f".spec.{each}"
    for each in (
        *("imageContentSources", "kubeAPIServerDNSName", "labels", "monitoring", "nodeSelector", "pausedUntil"),
        *("tolerations", "updateService", "services[].servicePublishingStrategy.nodePort.address"),
    )
)
# Of HyperShift at 3ee9615, which is newer than the release whose module has the definitions.
_NEWER: Final = "keyVaultType", "AzureBleuCloud"


def local(plural: str) -> Definition:
    return next(each for each in definitions() if each["spec"]["names"]["plural"] == plural)


def upstreams(plural: str) -> Definition:
    file = {
        "azureclusteridentities": lambda: clients.hypershift() / _AZURE / "infrastructure.cluster.x-k8s.io_{}.yaml",
        "hostedclusters": lambda: clients.hypershift() / _OPERATOR / "{}-Hypershift-Default.crd.yaml",
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
        elif name == "x-kubernetes-validations":
            yield from ((path, f"CEL: {' '.join(each['rule'].split())}") for each in value)
        elif name != _WORDS:
            known = sorted(value) if name in ("required", "enum") else value
            yield path, f"{name}: {json.dumps(known, sort_keys=True)}"


def served(plural: str) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """The rules of the one local version, and those of the real one."""
    mine = version(local(plural))
    theirs = next(each for each in upstreams(plural)["spec"]["versions"] if each["name"] == mine["name"])
    mine_rules, their_rules = (set(rules(each["schema"]["openAPIV3Schema"])) for each in (mine, theirs))
    return mine_rules, their_rules


@pytest.mark.parametrize(
    "plural", ["azureclusteridentities", "secretproviderclasses", "secretproviderclasspodstatuses"]
)
def test_a_local_definition_is_as_strict_as_the_real_one(plural: str) -> None:
    mine, real = local(plural), upstreams(plural)
    theirs = next(each for each in real["spec"]["versions"] if each["name"] == version(mine)["name"])

    local_rules, real_rules = served(plural)
    assert local_rules == real_rules
    assert version(mine).get("subresources") == theirs.get("subresources")
    assert (theirs["served"], theirs["storage"]) == (True, True)
    assert {mine["spec"][part] for part in ("group", "scope")} == {real["spec"][part] for part in ("group", "scope")}
    assert mine["spec"]["names"] == real["spec"]["names"]


def test_what_the_stack_writes_of_a_hosted_cluster_has_the_real_rules() -> None:
    mine, theirs = served("hostedclusters")
    by_name = {path for path, rule in mine if rule == "x-kubernetes-preserve-unknown-fields: true"}

    def is_compared(path: str) -> bool:
        return not any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in by_name | _NOT_WRITTEN)

    lacking = {(path, rule) for path, rule in theirs - mine if is_compared(path)}
    added = {(path, rule) for path, rule in mine - theirs if is_compared(path)}

    # Three rules of the whole are about fields that the stack does not write, too.
    assert {path for path, rule in lacking if "onfiguration" not in rule} == {".spec.platform.azure.cloud"}
    assert [each for each in added if not any(word in str(each) for word in _NEWER)] == []
    assert by_name & {".spec", ".spec.platform", ".spec.platform.azure", ".spec.services[]"} == set()


def test_a_rule_that_differs_is_found() -> None:
    schema = {"type": "object", "required": ["b", "a"], "properties": {"a": {"type": "string", "maxLength": 3}}}

    assert set(rules(schema)) == {
        ("", 'type: "object"'),
        ("", 'required: ["a", "b"]'),
        (".a", "is known"),
        (".a", 'type: "string"'),
        (".a", "maxLength: 3"),
    }
