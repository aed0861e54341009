"""What exists already, found in the event log of a failed `up`, and the commands that adopt it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ops.stack import existing
from tests.unit.ops.conftest import FakeEngine, Idstack

_STACK = "urn:pulumi:dev::idstack"
_AZURE = f"{_STACK}::pulumi:providers:azure-native::azure"
_OWN = f"{_STACK}::pulumi:providers:idstack"
_SUBSCRIPTION = "5b2c7e0e-0000-4000-8000-000000000001"
_VAULT = f"/subscriptions/{_SUBSCRIPTION}/resourceGroups/identity/providers/Microsoft.KeyVault/vaults/kv-dev"
_ASSIGNMENTS = "/subscriptions/s/resourceGroups/hc1/providers/Microsoft.Authorization/roleAssignments"
_NAME = "3a7b47a2-a1d0-5cc8-a2df-c3f5130e5401"
_TAKEN = f"cannot create already existing resource '{_ASSIGNMENTS}/{_NAME}'"

_GRANT = ("azure-native:authorization:RoleAssignment", {"scope": "/subscriptions/s/resourceGroups/hc1"})
_KEY_VAULT = (
    "azure-native:keyvault:Vault",
    {"resourceGroupName": "identity", "vaultName": "kv-dev", "location": "westeurope"},
)
_SECRET = (
    "idstack:index:CredentialSecret",
    {"cloud": "AzurePublicCloud", "tenantId": "tenant", "vaultId": _VAULT, "secretName": "cpo-hc1-json"},
)
_CLASS = (
    "kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass",
    {"metadata": {"name": "managed-azure-cpo", "namespace": "clusters-hc1"}},
)
_NAMESPACE = ("kubernetes:core/v1:Namespace", {"metadata": {"name": "clusters-hc1"}})
_PRINCIPAL = ("azuread:index/servicePrincipal:ServicePrincipal", {"clientId": "c"})


def _log(
    resource: tuple[str, dict[str, Any]],
    error: str,
    operation: str = "create",
    provider: str = _AZURE,
    parent: str = "idstack:azure:Parent::parent",
) -> list[str]:
    type_token, inputs = resource
    urn = f"{_STACK}::idstack:azure:Parent${type_token}::thing"
    azure = {"urn": _AZURE, "type": "pulumi:providers:azure-native", "inputs": {"subscriptionId": _SUBSCRIPTION}}
    new = {"type": type_token, "urn": urn, "parent": f"{_STACK}::{parent}", "inputs": inputs}
    failed = {"op": operation, "urn": urn, "new": {**new, "provider": f"{provider}::id"}}
    events = [
        {"resourcePreEvent": {"metadata": {"op": "same", "new": azure}}},
        {"diagnosticEvent": {"prefix": "error: ", "message": "update failed\n", "severity": "error"}},
        {"diagnosticEvent": {"urn": urn, "prefix": "error: ", "message": f"{error}\n", "severity": "error"}},
        {"resOpFailedEvent": {"metadata": failed}},
        {"summaryEvent": {}},
    ]
    return [json.dumps(event) for event in events]


@pytest.mark.parametrize(
    ("resource", "error", "id"),
    [
        (_GRANT, _TAKEN, f"{_ASSIGNMENTS}/{_NAME}"),
        (
            _GRANT,
            'Status=409 Code="RoleAssignmentExists" Message="The role assignment already exists. '
            f'The ID of the existing role assignment is {_NAME.replace("-", "")}."',
            f"{_ASSIGNMENTS}/{_NAME}",
        ),
        (_CLASS, 'secretproviderclasses "managed-azure-cpo" already exists', "clusters-hc1/managed-azure-cpo"),
        (_NAMESPACE, 'namespaces "clusters-hc1" already exists', "clusters-hc1"),
        (
            _PRINCIPAL,
            f'A resource with the ID "{_NAME}" already exists: To be managed via Terraform',
            f"/servicePrincipals/{_NAME}",
        ),
    ],
)
def test_what_exists_is_adopted_by_one_line(resource: tuple[str, dict[str, Any]], error: str, id: str) -> None:
    log = _log(resource, error)
    [found] = existing.read([*log, log[0][:20]])  # a killed engine's ends in the middle of a line

    assert found.commands("dev") == [
        f".venv/bin/idstack import --stack dev {resource[0]} thing {id} "
        f"--parent parent={_STACK}::idstack:azure:Parent::parent --provider provider={_AZURE}"
    ]
    nested = replace(found, parent=f"{_STACK}::idstack:a:A$idstack:b:B::b")
    assert f"--parent 'parent={_STACK}::idstack:a:A$idstack:b:B::b'" in nested.commands("dev")[0], "a shell has dollars"


def test_a_name_that_a_deleted_vault_holds_takes_two_lines() -> None:
    error = "A vault with the same name already exists in deleted state. You need to either recover or purge"
    [found] = existing.read(_log(_KEY_VAULT, error))

    first, second = found.commands("dev")
    assert first == f"az keyvault recover --name kv-dev --location westeurope --subscription {_SUBSCRIPTION}"
    assert f" {_KEY_VAULT[0]} thing {_VAULT} " in second
    assert found.commands("local")[0] == f".venv/bin/idstack local recover {_VAULT}"


@pytest.mark.parametrize("operation", ["create", "update"])
def test_deleted_secrets_are_recovered_by_one_line_whether_the_state_has_them(operation: str) -> None:
    error = "the secret was not written: 409 Secret cpo-hc1-json is currently in a deleted but recoverable state"
    found = existing.read(_log(_SECRET, error, operation))
    others = [replace(found[0], name="other"), replace(found[0], name="foreign")]
    stopped = existing.ObstacleError("dev", found, [])

    assert str(stopped.judged({**dict.fromkeys([*found, others[0]]), others[1]: "the stack prod has it"})) == (
        f"These were deleted, and the vault keeps their names:\n  thing: {_VAULT}/secrets/cpo-hc1-json\n"
        f"  other: {_VAULT}/secrets/cpo-hc1-json\nThe command recovers and adopts all of them, and runs `up` again:\n"
        "    .venv/bin/idstack recover --stack dev\n\n"
        "These resources conflict with the stack dev, and are not adopted, because they may belong to others:\n"
        f"  the stack prod has it:\n    foreign: {_VAULT}/secrets/cpo-hc1-json\nLeave those alone. Names of role "
        "assignments and managed identities derive from the hosted cluster's infraID, names of secrets from its name: "
        "give this cluster its own"
    )


@pytest.mark.parametrize("name", ["default", "default_0_1_0", "defaults"])
def test_the_plugins_own_secret_is_adopted_with_its_cloud_and_tenant(name: str) -> None:
    secret, provider = f"{_VAULT}/secrets/cpo-hc1-json", f"{_OWN}::{name}"
    log = _log(_SECRET, f"cannot create already existing resource '{secret}'", provider=provider)

    [found] = existing.read(log)

    named = f" --provider provider={provider}" if name == "defaults" else ""  # a default provider is not named
    assert found.commands("dev") == [
        f".venv/bin/idstack import --stack dev {_SECRET[0]} thing AzurePublicCloud/tenant{secret} "
        f"--parent parent={_STACK}::idstack:azure:Parent::parent{named}"
    ]


def test_a_certificate_is_adopted_with_what_the_state_has_of_it() -> None:
    certificate = "azuread:index/applicationCertificate:ApplicationCertificate"
    error = f'A resource with the ID "{_NAME}/certificate/{_NAME}" already exists: To be managed via Terraform'

    [found] = existing.read(_log((certificate, {}), error))

    assert found.commands("dev") == [".venv/bin/idstack recover --stack dev --no-up"]


@pytest.mark.parametrize(
    ("error", "operation"),
    [
        ('Status=403 Code="AuthorizationFailed" Message="The client does not have authorization"', "create"),
        (_TAKEN, "delete"),
        (_TAKEN, "update"),
    ],
)
def test_other_failures_are_left_to_the_engine(error: str, operation: str) -> None:
    assert existing.read(_log(_GRANT, error, operation)) == []


def test_a_failed_up_ends_with_the_lines(engine: FakeEngine, idstack: Idstack) -> None:
    engine.ends_with(255)
    engine.logs(_log(_GRANT, _TAKEN))

    printed = idstack("up", "--stack", "dev")

    assert printed.code == 1
    for told in (
        "`pulumi up` ended with code 255; the reason is printed above\n\nThese exist already",
        f"\n  thing\n    .venv/bin/idstack import --stack dev {_GRANT[0]} thing {_ASSIGNMENTS}/{_NAME} ",
        "Their owners could not be found: the stack dev has no tenantId",
    ):
        assert told in printed.error


def test_what_is_not_the_stacks_is_named_without_a_command_that_adopts_it() -> None:
    log = _log(_GRANT, _TAKEN)
    [found] = existing.read(log)
    stopped = existing.ObstacleError("dev", [found], ["it ended"])

    judged = str(stopped.judged({found: "the stack prod has it"}))

    assert "idstack import" in str(stopped)
    assert "idstack import" not in judged
    assert "idstack sweep" not in judged
    assert judged.startswith("it ended\n\nThese resources conflict with the stack dev, and are not adopted")
    assert f"  the stack prod has it:\n    thing: {_ASSIGNMENTS}/{_NAME}\n" in judged


@pytest.mark.parametrize(("resource", "is_named"), [(_GRANT, True), (_CLASS, False)], ids=["an assignment", "a class"])
def test_an_assignment_in_the_way_may_be_of_a_principal_that_is_gone(
    resource: tuple[str, dict[str, Any]], is_named: bool
) -> None:
    error = _TAKEN if is_named else 'secretproviderclasses "managed-azure-cpo" already exists'

    hint = existing.hint(existing.read(_log(resource, error)), "dev")

    assert ("`.venv/bin/idstack sweep --stack dev` says so, and frees the name with `--yes`" in hint) is is_named


_GROUP = ("azure-native:resources:ResourceGroup", {"resourceGroupName": "hc1-hc1-infra"})
_INFRASTRUCTURE = "idstack:hypershift:HostedCluster$idstack:azure:Infrastructure::hc1-infrastructure"


@pytest.mark.parametrize(
    ("parent", "is_named"),
    [
        (_INFRASTRUCTURE, True),
        ("idstack:azure:Infrastructure$idstack:azure:Parent::hc1-infrastructure", False),
        ("idstack:azure:Parent::hc1-infrastructure", False),
    ],
)
def test_infrastructure_that_exists_may_stay_somebody_elses(parent: str, is_named: bool) -> None:
    error = "cannot create already existing resource '/subscriptions/s/resourceGroups/hc1-hc1-infra'"
    found = existing.read(_log(_GROUP, error, parent=parent))

    hint = existing.hint(found, "dev")

    assert " thing /subscriptions/s/resourceGroups/hc1-hc1-infra --parent " in hint
    advice = "If the infrastructure of hc1 belongs to another owner, configure `infrastructure: existing` there"
    assert (advice in hint) == is_named
