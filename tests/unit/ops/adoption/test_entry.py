"""The configuration that follows from what exists: nothing of it makes the next `up` replace or remove anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from identity.catalogue import CONTROL_PLANE
from identity.naming import data_plane_identity_name, federated_credential_name
from identity.settings.schema.problems import Place
from ops.adoption.entry import FoundIdentity, FoundResources, values, values_of_workload_identities
from ops.adoption.files import NO_CERTIFICATES
from ops.stack.errors import CommandError
from tests.unit.ops.adoption.scripted import (
    EXISTING,
    ISSUER,
    MANAGED_ROW,
    ROW,
    SECRET,
    identity_id,
    with_identity,
    with_vault,
)

CLUSTER: dict[str, Any] = {"name": "hc1", "infraID": "hc1-infra", "issuerURL": ISSUER}
IDENTITY = f"hostedClusters[0].dataPlaneIdentities.{MANAGED_ROW.field}"
VAULT = {
    "vault.name": "kv-idstack-local",
    "vault.softDeleteRetentionDays": "30",
    "vault.purgeProtection": "false",
    "vault.publicNetworkAccess": "true",
    "vault.defaultAction": "Deny",
    "vault.allowedIpRanges[0]": "203.0.113.0/24",
}


def found(written: dict[str, Any], existing: FoundResources = EXISTING, infra_id: str | None = None) -> dict[str, str]:
    known: dict[Place, str] = {} if infra_id is None else {("infraID",): infra_id}
    return values(written, "hc1", known, existing)


def test_an_empty_stack_gets_everything_that_follows() -> None:
    assert found({}, infra_id="hc1-infra") == {
        "resourceGroup": "identity-local",
        "location": "eastus",
        "clusterSide": "hypershift",
        **VAULT,
        "hostedClusters[0].name": "hc1",
        "hostedClusters[0].infraID": "hc1-infra",
        f"hostedClusters[0].identities.{ROW.field}.secretName": SECRET,
        f"{IDENTITY}.name": "registry-MI-p",
        f"{IDENTITY}.location": "westeurope",
        f"{IDENTITY}.federatedCredentials.{MANAGED_ROW.subjects[0].suffix}": "registry-MI-p-fed-id",
    }


ROWS = [row for row in CONTROL_PLANE if row.federated is not None]
COMMON = {"resourceGroup": "iam", "location": "eastus"}


def of_iam(issuer: str = ISSUER, **names: str) -> FoundResources:
    """What `hypershift create iam azure` made for `hc1`; `names` are other names by field."""
    managed = {
        row.field: FoundIdentity(
            id=identity_id(names.get(row.field, data_plane_identity_name("hc1", one.name, "hc1-infra")), "iam"),
            location="eastus",
            principal_id="principal",
            federated={
                (issuer, subject.subject): federated_credential_name("hc1", one.credential_stem, subject.suffix)
                for subject in one.subjects
            },
        )
        for row in ROWS
        if (one := row.federated) is not None
    }
    return FoundResources(NO_CERTIFICATES, EXISTING.subscription, None, {}, {}, managed)


def test_names_of_create_iam_need_no_key_and_others_are_kept() -> None:
    known: dict[Place, str] = {("infraID",): "hc1-infra"}
    written = values_of_workload_identities({}, "hc1", known, of_iam())

    private = {row.field for row in ROWS if row.workload is not None and row.workload.private}
    assert written == {
        **COMMON,
        "hostedClusters[0].name": "hc1",
        "hostedClusters[0].infraID": "hc1-infra",
        "hostedClusters[0].authentication": "workload-identities",
        "hostedClusters[0].issuerURL": ISSUER,
        # A public cluster would have none.
        **{
            f"hostedClusters[0].workloadIdentities.{field}.name": "hc1-control-plane-operator-hc1-infra"
            for field in private
        },
    }
    # As ccoctl names them: by the component's namespace and Secret.
    name = "hc1-openshift-cluster-csi-drivers-azure-disk-credentials"
    of_ccoctl = values_of_workload_identities({}, "hc1", known, of_iam(disk=name))
    assert of_ccoctl == {**written, "hostedClusters[0].workloadIdentities.disk.name": name}


def test_identities_of_several_issuers_need_the_hosted_cluster() -> None:
    existing = of_iam()
    other = of_iam("https://other.example.com")
    mixed = replace(existing, managed={**existing.managed, "disk": other.managed["disk"]})

    with pytest.raises(CommandError, match="the identities trust several issuers"):
        values_of_workload_identities({}, "hc1", {}, mixed)

    assert values_of_workload_identities({}, "hc1", {("issuerURL",): ISSUER}, mixed)
    of_certificates: Any = {"hostedClusters": [{"name": "hc1", "authentication": "managed-identities"}]}
    with pytest.raises(CommandError, match=r"hostedClusters\[0\].authentication: found managed-identities"):
        values_of_workload_identities(of_certificates, "hc1", {}, existing)


def test_what_is_configured_already_is_not_written_again() -> None:
    whole = {
        "resourceGroup": "Identity-Local",
        "location": "eastus",
        "clusterSide": "hypershift",
        "vault": {
            "name": "kv-idstack-local",
            "softDeleteRetentionDays": 90,
            "purgeProtection": True,
            "publicNetworkAccess": False,
            "defaultAction": "Deny",
            "allowedIpRanges": [],
        },
        "hostedClusters": [
            {**CLUSTER, "name": "hc0"},
            {**CLUSTER, "identities": {ROW.field: {"secretName": SECRET}}},
        ],
    }

    suffixes = ("name", "location", f"federatedCredentials.{MANAGED_ROW.subjects[0].suffix}")
    assert set(found(whole)) == {f"{IDENTITY}.{suffix}".replace("[0]", "[1]") for suffix in suffixes}
    keys = found(
        {"sharedStack": "organization/idstack/shared", "resourceGroup": "Identity-Local", "location": "westeurope"}
    )
    assert not [key for key in keys if key.startswith("vault")], "a shared vault is another stack's"
    assert f"{IDENTITY}.location" not in keys, "the stack's own region decides"


SUBJECT = MANAGED_ROW.subjects[0]
CLI_NAME = data_plane_identity_name("hc1", MANAGED_ROW.name, "hc1-infra")
CCOCTL_NAME = "hc1-openshift-image-registry-installer-cloud-credentials"
OF_THE_CLI = {(ISSUER, SUBJECT.subject): federated_credential_name("hc1", MANAGED_ROW.name, SUBJECT.suffix)}
# It names a federated credential after the service account.
OF_CCOCTL = {(ISSUER, subject.subject): subject.subject.rpartition(":")[2] for subject in MANAGED_ROW.subjects}
OF_ANOTHER_CLUSTER = {("https://oidc.example.com/q", SUBJECT.subject): "other"}


@pytest.mark.parametrize(
    ("name", "federated", "kept"),
    [
        (CLI_NAME, OF_THE_CLI, {}),
        (CLI_NAME, OF_ANOTHER_CLUSTER, {}),
        (
            CCOCTL_NAME,
            OF_CCOCTL,
            {
                f"{IDENTITY}.name": CCOCTL_NAME,
                **{
                    f"{IDENTITY}.federatedCredentials.{subject.suffix}": subject.subject.rpartition(":")[2]
                    for subject in MANAGED_ROW.subjects
                },
            },
        ),
    ],
    ids=["of HyperShift's CLI", "of another cluster's issuer", "of ccoctl"],
)
def test_names_of_managed_identities_are_kept_unless_the_stack_gives_them(
    name: str, federated: dict[tuple[str, str], str], kept: dict[str, str]
) -> None:
    own = with_identity(id=identity_id(name), location="eastus", federated=federated)

    keys = found({"hostedClusters": [CLUSTER]}, own)

    assert {key: value for key, value in keys.items() if "dataPlaneIdentities" in key} == kept


@pytest.mark.parametrize(
    ("written", "existing", "problem"),
    [
        ({"location": "westeurope"}, EXISTING, "location: found westeurope; accepted: eastus, the region of the vault"),
        ({"resourceGroup": "x"}, EXISTING, "resourceGroup: found x; accepted: identity-local"),
        ({"clusterSide": "stack"}, EXISTING, "clusterSide: found stack; accepted: hypershift"),
        ({"vault": {"name": "kv-x"}}, EXISTING, "vault.name: found kv-x; accepted: kv-idstack-local"),
        ({"hostedClusters": [{**CLUSTER, "infraID": "x"}]}, EXISTING, "hostedClusters[0].infraID: found x"),
        ({}, with_vault(enableRbacAuthorization=False), "kv-idstack-local uses access policies"),
        (
            {},
            with_identity(id=identity_id("registry-MI-p", "elsewhere")),
            "registry-MI-p is in the resource group elsewhere; accepted: identity-local",
        ),
    ],
)
def test_a_configuration_that_would_change_what_exists_is_refused(
    written: dict[str, Any], existing: FoundResources, problem: str
) -> None:
    with pytest.raises(CommandError) as refused:
        found(written, existing, infra_id="hc1-infra")

    assert problem in str(refused.value)
