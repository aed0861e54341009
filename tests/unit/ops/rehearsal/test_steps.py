"""The engine's event log, told by identity, secret, role, class and mount."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.catalogue import CONTROL_PLANE
from identity.naming import control_plane_identity_name
from ops.rehearsal.steps import Operation, ResourceKind, ResourceOwner, ResourceStep, owner_of, read

_ROLE = "azure-native:authorization:RoleAssignment"
_DEPLOYMENT = "kubernetes:apps/v1:Deployment"


def event(op: str, kind: str = _ROLE, name: str = "hc1-kms-roles-managed", **metadata: Any) -> str:
    """A line of the log: a step begins."""
    state = {"custom": True, "inputs": {}}
    urn = f"urn:pulumi:local-dev::idstack::idstack:azure:RoleGrants${kind}::{name}"
    found = {"op": op, "urn": urn, "old": state, "new": state, **metadata}
    return json.dumps({"sequence": 1, "resourcePreEvent": {"metadata": found}})


def only(*lines: str) -> ResourceStep:
    """The one step of these lines."""
    [found] = read(lines).steps
    return found


@pytest.mark.parametrize(
    ("op", "operation"),
    [
        ("create", Operation.CREATE),
        ("import", Operation.CREATE),
        ("update", Operation.UPDATE),
        ("delete", Operation.DELETE),
        ("replace", Operation.REPLACE),
    ],
)
def test_an_operation_of_the_engine_is_one_of_four(op: str, operation: Operation) -> None:
    assert only(event(op)).operation is operation


def test_the_parts_of_a_replacement_are_one_step_with_its_reason() -> None:
    parts = [event(each, keys=["scope"], diffs=["scope", "description"]) for each in ("create-replacement", "replace")]
    step = only(*parts, event("delete-replaced"))

    assert (step.operation, step.properties, step.kind) == (Operation.REPLACE, ("scope",), ResourceKind.ROLE)


def test_an_update_names_what_differs() -> None:
    step = only(event("update", detailedDiff={"spec.template": {}, "tags.team": {}}, diffs=["spec", "tags"]))

    assert step.properties == ("spec.template", "tags.team")


@pytest.mark.parametrize(
    "line",
    [
        event("same"),
        event("read"),
        event("create", "pulumi:providers:azure-native"),
        event("create", new={"custom": False}),
        '{"resourcePreEvent": {"meta',
        json.dumps({"summaryEvent": {}}),
    ],
    ids=["same", "read", "a provider", "a component", "cut off", "another event"],
)
def test_what_changes_no_resource_is_no_step(line: str) -> None:
    assert read([line]).steps == ()


def test_what_the_state_protects_is_known() -> None:
    assert only(event("delete", old={"custom": True, "protect": True})).is_protected
    assert not only(event("delete")).is_protected


@pytest.mark.parametrize(
    ("old", "new", "restarts"),
    [
        ({"template": {"a": 1}}, {"template": {"a": 2}}, True),
        ({"template": {"a": 1}, "replicas": 1}, {"template": {"a": 1}, "replicas": 2}, False),
    ],
)
def test_pods_start_anew_with_another_template(old: dict[str, Any], new: dict[str, Any], restarts: bool) -> None:
    states: dict[str, Any] = {
        key: {"custom": True, "inputs": {"spec": spec}} for key, spec in (("old", old), ("new", new))
    }

    assert only(event("update", _DEPLOYMENT, **states)).restarts is restarts


def test_a_new_deployment_restarts_nothing_and_a_replaced_one_does() -> None:
    assert not only(event("create", _DEPLOYMENT)).restarts
    assert only(event("replace", _DEPLOYMENT)).restarts


def test_errors_come_without_colours_and_once() -> None:
    line = json.dumps({"diagnosticEvent": {"severity": "error", "message": "<{%reset%}>it is <{%bold%}>gone\n"}})
    other = json.dumps({"diagnosticEvent": {"severity": "info", "message": "fine"}})

    assert read([line, other, line]).errors == ("it is gone",)


@given(
    cluster=st.sampled_from(["hc1", "hc1-kms", "hc"]),
    row=st.sampled_from(CONTROL_PLANE),
    rest=st.sampled_from(["", "-entra-application", "-credential-secret", "-roles-managed", "-class-object"]),
)
def test_a_resource_belongs_to_its_identity(cluster: str, row: Any, rest: str) -> None:
    clusters = ("hc1", "hc1-kms", "hc")
    name = f"{control_plane_identity_name(cluster, row.field)}{rest}"
    # What is called `hc1-kms-...` may be the cluster's or the identity's; the longer name wins.
    expected = ResourceOwner(cluster, row.field)
    if name.startswith("hc1-kms") and cluster == "hc1":
        assert owner_of(name, clusters).cluster == "hc1-kms"
    else:
        assert owner_of(name, clusters) == expected


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("vault-vault", ResourceOwner()),
        ("key-vault-user-roles-vault", ResourceOwner()),
        ("hc1", ResourceOwner("hc1")),
        ("hc1-cluster-side-namespace", ResourceOwner("hc1")),
        ("hc1-data-plane-disk-identity", ResourceOwner("hc1", "diskMSIClientID")),
        ("hc1-cluster-side-probe-kms-2-deployment", ResourceOwner("hc1", "kms")),
        ("hc1-cluster-side-disk-class-object", ResourceOwner("hc1", "disk")),
        ("hc1-acr-pull-identity", ResourceOwner("hc1", "acrPull")),
        ("hc10-kms-entra-application", ResourceOwner()),
    ],
)
def test_owners_are_read_from_the_components_names(name: str, owner: ResourceOwner) -> None:
    assert owner_of(name, ("hc1",)) == owner
