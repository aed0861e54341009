"""The whole stack, its outputs, and those of a run that only renews."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.stack import renewed_outputs
from identity.catalogue import DATA_PLANE
from tests.unit import cases
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor, run
from tests.unit.components.simulation import UNKNOWN, a_uuid
from tests.unit.components.world import (
    ADD_ON,
    GROUPS,
    IDENTITIES,
    MANAGEMENT_CLUSTER,
    SECOND_CLUSTER,
    TENANT,
    VAULT,
    hosted_cluster,
    lookups,
)

SECRET = "idstack:index:CredentialSecret"
# Package of a resource's type: the explicit provider that must manage it.
PROVIDERS = {"azure-native": "azure", "azuread": "entra", "kubernetes": "kubernetes"}


IN_USE = {
    **{
        row.field: {"secret": f"{VAULT}/secrets/{row.secret_stem}-hc1-json", "principal": "entra-application"}
        for row in IDENTITIES
    },
    **{
        f"{field}MSIClientID": {
            "principal": f"{GROUPS}/identity-dev/providers/Microsoft.ManagedIdentity/userAssignedIdentities/"
            f"hc1-{name}-hc1-infra",
            "location": "eastus",
        }
        for field, name in {"imageRegistry": "image-registry", "disk": "disk", "file": "file"}.items()
    },
}


def test_it_exports_vault_key_vault_user_and_hosted_clusters(stack: RecordingMonitor) -> None:
    outputs = dict(copy.deepcopy(stack.stack_outputs.values))
    hosted_clusters = outputs.pop("hostedClusters")

    assert outputs == {
        "keyVaultId": VAULT,
        "keyVaultName": "kv-idstack-dev",
        "keyVaultUri": "https://kv-idstack-dev.vault.azure.net/",
        "keyVaultUserClientId": ADD_ON["clientId"],
        "clusterSide": "stack",
        "tagNames": ["team"],
        "managementClusterId": MANAGEMENT_CLUSTER,
        "tenantId": TENANT,
        "ownerId": a_uuid("owner"),
    }
    registered = stack.outputs_of("hc1")
    base = hosted_clusters["hc1"].pop("hostedClusterBase")
    assert base["metadata"]["annotations"].keys() == {"hypershift.openshift.io/pod-security-admission-label-override"}
    assert base["spec"].keys() & registered["spec"].keys() == set(), "both are fields of one specification"
    assert hosted_clusters == {
        "hc1": {
            "namespace": "clusters",
            "controlPlane": registered["control_plane"],
            "dataPlane": registered["data_plane"],
            "hostedClusterSpec": registered["spec"],
            "dnsZoneResourceGroup": "dns-dev",
            "credentialsInUse": IN_USE,
            "encryptionKeys": {"activeKey": registered["spec"]["secretEncryption"]["kms"]["azure"]["activeKey"]},
        }
    }


def test_all_that_could_be_taken_for_another_stacks_carries_the_owner_id(stack: RecordingMonitor) -> None:
    owner = stack.stack_outputs.values["ownerId"]
    applications = stack.all("azuread:index/application:Application")
    identities = stack.all("azure-native:managedidentity:UserAssignedIdentity")
    secrets = stack.all(SECRET)

    assert [application.inputs["tags"][1:] for application in applications] == [[f"idstack-owner:{owner}"]] * len(
        IDENTITIES
    )
    assert {identity.inputs["tags"]["idstack-owner"] for identity in identities} == {owner}
    assert [secret.inputs["ownerId"] for secret in secrets] == [owner] * len(IDENTITIES)


def test_a_run_that_only_renews_changes_no_owner_id(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDSTACK_RENEWALS", json.dumps({"hc1-ingress-entra-schedule": "renew"}))
    recorder = program(clusterSide="hypershift")

    assert len(recorder.all("idstack:index:StackOwner")) == 1, "what depends on it in the state comes after it"
    assert [resource.inputs.get("ownerId") for resource in recorder.all(SECRET)] == [None] * len(IDENTITIES)


def test_every_component_registers_its_outputs(stack: RecordingMonitor) -> None:
    components = {resource.urn for resource in stack.registered if resource.is_component}

    assert len(components) > 30
    assert components - stack.outputs.keys() == set()
    assert {urn: outputs.secrets for urn, outputs in stack.outputs.items() if outputs.secrets} == {}, (
        "nor is one secret"
    )
    assert {resource.type.partition(":")[0] for resource in stack.registered if resource.is_component} == {"idstack"}


def test_every_resource_belongs_to_a_component_and_is_named_after_it(stack: RecordingMonitor) -> None:
    top = {resource.name for resource in stack.registered if resource.parent == "idstack-test"}
    misnamed = [
        resource.name
        for resource in stack.registered
        if resource.name not in top and not resource.name.startswith(f"{resource.parent}-")
    ]

    assert top == {"azure", "entra", "kubernetes", "vault", "key-vault-user", "owner", "hc1"}
    assert misnamed == []


def test_every_resource_has_the_explicit_provider_of_its_plugin(stack: RecordingMonitor) -> None:
    """The project's own plugin has nothing to configure, so its default provider can reach nothing."""
    assert _providers(stack) == {*PROVIDERS.items(), ("idstack", "")}


@pytest.mark.parametrize("disabled", ["*", "idstack"])
def test_its_own_provider_is_explicit_where_the_default_one_is_disabled(program: Program, disabled: str) -> None:
    configured = program(disabled=[disabled])

    assert _providers(configured) == {*PROVIDERS.items(), ("idstack", "idstack")}
    own = [call.provider for call in configured.invoked if call.function.startswith("idstack:")]
    assert {*own} == {"idstack"}


def _providers(stack: RecordingMonitor) -> set[tuple[str, str]]:
    """Package of each resource's type, with the name of its explicit provider."""
    return {
        (resource.type.partition(":")[0], resource.provider)
        for resource in stack.registered
        if not resource.is_component and not resource.type.startswith("pulumi:providers:")
    }


def test_vault_and_applications_are_protected_unless_the_settings_say_no(
    stack: RecordingMonitor, program: Program
) -> None:
    protected, unprotected = (
        {resource.type for resource in recorder.registered if resource.request.protect}
        for recorder in (stack, program(protect="false", clusterSide="hypershift"))
    )

    assert protected == {"azure-native:keyvault:Vault", "azuread:index/application:Application"}
    assert unprotected == set()


def _shows_a_key(text: str) -> bool:
    """Whether a private key is in it, as PEM or in base64 as `client_secret` begins."""
    return "PRIVATE KEY" in text or base64.b64encode(b"-----BEGIN PRIVATE KEY--").decode() in text


def test_no_input_and_no_output_has_a_private_key_not_even_as_a_secret(stack: RecordingMonitor) -> None:
    assert len(stack.all(SECRET)) == len(IDENTITIES)
    assert [text for text in stack.strings() if _shows_a_key(text)] == []


def test_a_schedule_gets_what_the_last_complete_run_delivered(program: Program) -> None:
    delivered = {"kms": {"generation": "b4"}, "ingress": {"generation": None}, "disk": {}}
    last = {"hostedClusters": {"hc1": {"controlPlane": delivered, "credentialsInUse": {}}}}
    answers = lookups(readStackOutputs={"outputs": last, "secretOutputNames": []})

    schedules = program(invokes=answers, clusterSide="hypershift").all("idstack:index:RenewalSchedule")

    assert {
        schedule.name: schedule.inputs["delivered"] for schedule in schedules if "delivered" in schedule.inputs
    } == {"hc1-kms-entra-schedule": "b4"}


def test_several_hosted_clusters_fit_into_one_stack(two_clusters: RecordingMonitor, stack: RecordingMonitor) -> None:
    urns = [resource.urn for resource in two_clusters.registered]
    assignments = two_clusters.all("azure-native:authorization:RoleAssignment")
    names = [assignment.inputs["roleAssignmentName"] for assignment in assignments]
    assert len(set(urns)) == len(urns)
    grants = [row.hypershift for row in (*IDENTITIES, *DATA_PLANE)]
    of_the_key_vault_user = 1
    assert len(set(names)) == len(names) == 2 * sum(len(grant.scopes) for grant in grants) + of_the_key_vault_user
    exported = two_clusters.stack_outputs.values["hostedClusters"]
    assert set(exported) == {"hc1", "hc2"}
    assert exported["hc1"] == stack.stack_outputs.values["hostedClusters"]["hc1"]


@pytest.fixture(scope="module")
def preview(program: Program) -> RecordingMonitor:
    """A preview of the first `up`, when nothing exists."""
    return program(options={"preview": True})


def test_a_preview_shows_every_resource_that_up_makes_in_its_order(
    preview: RecordingMonitor, stack: RecordingMonitor
) -> None:
    assert preview.names() == stack.names()
    secret = preview.one(SECRET, "hc1-kms-credential-secret")
    probe = preview.one("kubernetes:apps/v1:Deployment", "hc1-cluster-side-probe-kms-deployment")
    assert preview.waits_for(secret, preview.one("idstack:index:SignInGate", "hc1-kms-entra-gate-a"))
    assert preview.waits_for(probe, secret)


def test_a_preview_shows_all_of_a_secret_but_what_azure_and_the_issue_decide(preview: RecordingMonitor) -> None:
    secret = preview.one(SECRET, "hc1-kms-credential-secret")

    words = {"TENANT": TENANT, "VAULT": VAULT, "UNKNOWN": UNKNOWN}
    assert secret.inputs == cases.read(Path(__file__).with_name("previewed-secret.yaml"), words)
    outputs = preview.stack_outputs.values
    kms = outputs["hostedClusters"]["hc1"]["hostedClusterSpec"]["secretEncryption"]["kms"]["azure"]["kms"]
    assert outputs["keyVaultUri"] == UNKNOWN
    assert kms == {"clientID": UNKNOWN, "credentialsSecretName": "kms-hc1-json", "objectEncoding": "utf-8"}


def test_nothing_outside_a_rotation_depends_on_a_certificate(stack: RecordingMonitor) -> None:
    """The engine keeps what an untargeted resource depends on: a leaked certificate would stay registered."""
    slots = re.compile(r".*-entra-(certificate|registration|gate)-[ab]")
    of_a_slot = {resource.urn for resource in stack.registered if slots.fullmatch(resource.name)}
    rotated = of_a_slot | {resource.urn for resource in stack.all(SECRET)}

    others = (resource for resource in stack.registered if resource.urn not in rotated)
    assert of_a_slot
    assert [other.name for other in others if of_a_slot & set(other.request.dependencies)] == []


_BEFORE = {"notAfter": "2026-05-01T00:00:00Z", "renewAfter": "2026-03-15T00:00:00Z", "thumbprint": "AA"}
_BEFORE["generation"] = "a1"
_NOW = {"notAfter": "2026-08-01T00:00:00Z", "renewAfter": "2026-06-15T00:00:00Z", "thumbprint": "BB"}
_NOW["generation"] = "b2"
_ADDRESS = {"secret": "/a/vault/secrets/disk", "principal": "entra-application"}
_ELSEWHERE = {**_ADDRESS, "principal": "/an/identity"}


def _outputs(row: Mapping[str, Any], address: Mapping[str, Any] | None = None, **others: Any) -> dict[str, Any]:
    disk = {"clientID": "an-id", "objectEncoding": "utf-8", **row}
    cluster = {"controlPlane": {"disk": disk}, "credentialsInUse": {"disk": address or _ADDRESS}}
    return {"clusterSide": "stack", "commit": "before", "hostedClusters": {"hc1": cluster}, **others}


def _merged(now: Mapping[str, Any], before: Mapping[str, Any] | None = None, *, preview: bool = False) -> Any:
    """What a program exports that makes `now` after `before`."""
    recorder = run(lambda: _exports(before or _outputs(_BEFORE), now), preview=preview)
    return recorder.stack_outputs.values


async def _exports(before: Any, now: Any) -> None:
    for name, renewed_output in renewed_outputs(before, now).items():
        pulumi.export(name, renewed_output)


def test_a_renewed_credential_has_its_new_dates_and_all_else_is_as_before() -> None:
    changed = {**_NOW, "clientID": "another", "objectEncoding": "base64"}

    merged = _merged(_outputs(changed, clusterSide="hypershift", commit="now", tenantId="a-tenant"))

    assert merged == _outputs(_NOW)


@pytest.mark.parametrize("preview", [False, True])
def test_a_credential_of_which_nothing_is_known_is_as_before(preview: bool) -> None:
    async def program() -> None:
        failed: pulumi.Output[Any] = pulumi.Output(set(), _future(None), _future(False))
        await _exports(_outputs(_BEFORE), _outputs(dict.fromkeys(_NOW, failed)))

    assert run(program, preview=preview).stack_outputs.values == _outputs(_BEFORE)


async def _future(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


def _of_another_cluster() -> dict[str, Any]:
    outputs = _outputs(_NOW)
    return {**outputs, "hostedClusters": {"hc2": outputs["hostedClusters"]["hc1"]}}


def _of_another_identity() -> dict[str, Any]:
    cluster = {"controlPlane": {"kms": _NOW}, "credentialsInUse": {"kms": _ADDRESS}}
    return {**_outputs(_NOW), "hostedClusters": {"hc1": cluster}}


@pytest.mark.parametrize(
    ("now", "before"),
    [
        (_outputs({**_NOW, "thumbprint": "AA"}), _ADDRESS),
        (_outputs(_NOW, {**_ADDRESS, "secret": "/a/vault/secrets/mine"}), _ADDRESS),
        (_outputs(_NOW, _ELSEWHERE), _ADDRESS),
        (_outputs(_NOW, _ELSEWHERE), _ELSEWHERE),
        (_of_another_cluster(), _ADDRESS),
        (_of_another_identity(), _ADDRESS),
    ],
    ids=["same certificate", "secret name", "source", "issued elsewhere", "cluster", "identity"],
)
def test_what_is_no_renewal_of_the_credential_comes_with_up_alone(now: dict[str, Any], before: dict[str, Any]) -> None:
    assert _merged(now, _outputs(_BEFORE, before)) == _outputs(_BEFORE, before)


def test_a_stack_that_was_never_brought_up_whole_has_no_outputs_afterwards() -> None:
    recorder = run(lambda: _exports({}, _outputs(_NOW)))

    assert recorder.stack_outputs.values == {}


def test_the_program_keeps_its_outputs_in_a_run_that_only_renews(
    program: Program, two_clusters: RecordingMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the configuration would lose credentials, which nobody brings up with a renewal."""
    last = dict(two_clusters.stack_outputs.values)
    answers = {**lookups(), "pulumi:pulumi:readStackOutputs": {"name": "", "outputs": last, "secretOutputNames": []}}
    monkeypatch.setenv("IDSTACK_RENEWALS", "{}")

    recorder = program(
        invokes=answers,
        hostedClusters=[
            hosted_cluster(identities={"ingress": {"secretName": "mine"}}),
            {**SECOND_CLUSTER, "name": "new"},
        ],
        clusterSide="hypershift",
    )

    assert recorder.stack_outputs.values == last
