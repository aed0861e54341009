"""Each rule: what it refuses, what it lets pass, and where it says nothing."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.catalogue import CONTROL_PLANE, DATA_PLANE, OPTIONAL
from identity.naming import kebab
from identity.settings.schema.model import PolicyName
from policies.rules import LONGEST_LIFE_DAYS, RULES, CheckedResource, RuleContext, StackConfig

VAULT = "azure-native:keyvault:Vault"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
HOSTED_CLUSTER = "kubernetes:hypershift.openshift.io/v1beta1:HostedCluster"
DIGEST = f"registry.example.com/probe@sha256:{'0' * 64}"
GROUP = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/hc1-managed"
OWNER = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635"
PRODUCTION = StackConfig(is_protected=True, clusters=("hc1", "hc1-b"))
DEVELOPMENT = StackConfig(is_protected=False)


def found(
    rule: PolicyName, *kinds: str, name: str = "some", context: RuleContext | None = None, **inputs: Any
) -> list[str]:
    """What the rule finds at a resource of a production stack."""
    resource = CheckedResource(kinds=kinds, name=name, inputs=inputs)
    return [violation.found for violation in RULES[rule](resource, context or RuleContext(PRODUCTION))]


def vault(**properties: Any) -> dict[str, Any]:
    """The inputs of a vault that keeps every rule, but for the changes."""
    rules = {"defaultAction": "Deny", "ipRules": [{"value": "203.0.113.0/28"}]}
    return {"properties": {"enablePurgeProtection": True, "networkAcls": rules, **properties}}


def test_every_name_that_a_waiver_can_give_is_a_rule() -> None:
    assert tuple(RULES) == get_args(PolicyName)
    assert all(rule.__doc__ for rule in RULES.values())


@pytest.mark.parametrize("value", [None, False])
def test_a_production_vault_needs_purge_protection(value: bool | None) -> None:
    assert found("vault-purge-protection", VAULT, **vault()) == []
    bad = vault(enablePurgeProtection=value)
    assert found("vault-purge-protection", VAULT, **bad) == ["purge protection is off in a stack with `protect: true`"]
    assert found("vault-purge-protection", VAULT, context=RuleContext(DEVELOPMENT), **bad) == []


@pytest.mark.parametrize("rules", [{"defaultAction": "Allow"}, {}, None])
def test_a_production_vault_is_closed_by_default(rules: dict[str, str] | None) -> None:
    assert found("network-open-to-all", VAULT, **vault()) == []
    bad = vault(networkAcls=rules)
    assert found("network-open-to-all", VAULT, **bad) == ["the vault's firewall lets every network in"]
    assert found("network-open-to-all", VAULT, **vault(networkAcls=rules, publicNetworkAccess="Disabled")) == []
    assert found("network-open-to-all", VAULT, context=RuleContext(DEVELOPMENT), **bad) == []


@pytest.mark.parametrize("value", ["0.0.0.0/0", "128.0.0.0/1", "8.0.0.0/9"])
def test_a_range_of_nearly_everybody_counts_as_open(value: str) -> None:
    rules = {"defaultAction": "Deny", "ipRules": [{"value": "203.0.113.7"}, {"value": value}]}
    assert found("network-open-to-all", VAULT, **vault(networkAcls=rules)) == [
        f"{value} is let in, which is nearly everybody"
    ]


def assignment(role: str, scope: str = GROUP, principal: str = "p") -> dict[str, Any]:
    """The inputs of a role assignment."""
    return {
        "roleDefinitionId": f"/subscriptions/s/providers/Microsoft.Authorization/roleDefinitions/{role}",
        "scope": scope,
        "principalId": principal,
    }


@pytest.mark.parametrize("row", CONTROL_PLANE, ids=lambda row: row.field)
def test_an_identity_has_the_roles_of_its_row_alone(row: Any) -> None:
    kinds, name = ("idstack:azure:ControlPlaneIdentity", ASSIGNMENT), f"hc1-{kebab(row.field)}-roles-managed"
    others = {other.builtin.role.guid for other in CONTROL_PLANE} - {row.hypershift.role.guid, row.builtin.role.guid}
    for guid in (row.hypershift.role.guid, row.builtin.role.guid):
        assert found("role-wider-than-catalogue", *kinds, name=name, **assignment(guid)) == []
    for guid in (OWNER, *others):
        assert found("role-wider-than-catalogue", *kinds, name=name, **assignment(guid)) == [
            f"the role {guid} at {GROUP}"
        ]


def test_no_name_of_a_cluster_lends_an_identity_the_role_of_another() -> None:
    kms = next(row for row in CONTROL_PLANE if row.field == "kms")
    context = RuleContext(StackConfig(clusters=("a-kms-roles-b",)))
    kinds, name = ("idstack:azure:ControlPlaneIdentity", ASSIGNMENT), "a-kms-roles-b-ingress-roles-managed"
    assert found(
        "role-wider-than-catalogue", *kinds, name=name, context=context, **assignment(kms.builtin.role.guid)
    ) == [f"the role {kms.builtin.role.guid} at {GROUP}"]


def test_an_identity_may_have_the_role_that_its_configuration_keeps() -> None:
    clusters = [{"name": "hc1", "identities": {"ingress": {"customRole": OWNER.upper()}, "disk": {}}}]
    environ = {"PULUMI_CONFIG": json.dumps({"idstack:hostedClusters": json.dumps(clusters)})}
    context = RuleContext(StackConfig.from_environment(environ))
    kinds = ("idstack:azure:ControlPlaneIdentity", ASSIGNMENT)

    def at(name: str) -> list[str]:
        return found("role-wider-than-catalogue", *kinds, name=name, context=context, **assignment(OWNER))

    assert at("hc1-ingress-roles-managed") == []
    assert at("hc1-disk-roles-managed") == at("hc2-ingress-roles-managed") == [f"the role {OWNER} at {GROUP}"]


@pytest.mark.parametrize(
    ("kind", "name", "guid"),
    [
        *(("DataPlaneIdentity", f"hc1-data-plane-{row.name}-roles-x", row.builtin.role.guid) for row in DATA_PLANE),
        *(
            ("OptionalIdentity", f"hc1-{row.name}-roles-dns", grant.role.guid)
            for row in OPTIONAL
            for grant in row.grants
        ),
        ("OptionalIdentity", "hc1-acr-pull-attacher-roles-identity", "f1a07417-d97a-45cb-824c-7a7467783830"),
        ("ControlPlaneIdentity", "hc1-cpo-reader-secret", "4633458b-17de-408a-b874-0445c86b69e6"),
        ("KeyVaultUser", "key-vault-user-roles-vault", "4633458b-17de-408a-b874-0445c86b69e6"),
        ("ManagementCluster", "management-cluster-deployer-cluster", "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"),
        ("OidcIssuer", "hc1-issuer-deployer-account", "ba92f5b4-2d11-453d-a403-e96b0029c9fe"),
    ],
)
def test_every_other_assignment_has_the_role_of_its_component(kind: str, name: str, guid: str) -> None:
    kinds = (f"idstack:azure:{kind}", ASSIGNMENT)
    assert found("role-wider-than-catalogue", *kinds, name=name, **assignment(guid)) == []
    assert found("role-wider-than-catalogue", *kinds, name=name, **assignment(OWNER)) == [
        f"the role {OWNER} at {GROUP}"
    ]


def test_an_assignment_of_no_component_of_the_catalogue_is_refused() -> None:
    reader = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
    assert found("role-wider-than-catalogue", ASSIGNMENT, **assignment(reader)) == [f"the role {reader} at {GROUP}"]


@pytest.mark.parametrize(
    "scope", ["/subscriptions/s", "/subscriptions/s/", "/providers/Microsoft.Management/managementGroups/all", "/"]
)
def test_no_role_is_assigned_above_a_resource_group(scope: str) -> None:
    [row, *_] = DATA_PLANE
    kinds, name = ("idstack:azure:DataPlaneIdentity", ASSIGNMENT), f"hc1-data-plane-{row.name}-roles-managed"
    assert found("role-wider-than-catalogue", *kinds, name=name, **assignment(row.hypershift.role.guid, scope)) == [
        f"a role at the whole of {scope}"
    ]


@given(st.integers(2, 730))
def test_a_certificate_lives_no_longer_than_the_limit(days: int) -> None:
    broken = found("certificate-life", "idstack:index:RenewalSchedule", lifetimeDays=float(days))
    assert broken == ([f"a certificate of {days} days"] if days > LONGEST_LIFE_DAYS else [])


def pod(*images: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"image": image} for image in images]}}}}


@pytest.mark.parametrize("image", ["probe", "registry.example.com/probe:1", f"{DIGEST}0", DIGEST[:-1]])
def test_an_image_by_tag_is_refused_in_production_only(image: str) -> None:
    assert found("image-by-tag", DEPLOYMENT, **pod(DIGEST, image)) == [f"the image {image}"]
    assert found("image-by-tag", HOSTED_CLUSTER, spec={"release": {"image": image}}) == [f"the image {image}"]
    assert found("image-by-tag", DEPLOYMENT, context=RuleContext(DEVELOPMENT), **pod(image)) == []
    assert found("image-by-tag", DEPLOYMENT, **pod(DIGEST)) == []
    assert found("image-by-tag", HOSTED_CLUSTER, spec={"release": {"image": DIGEST}}) == []
    assert found("image-by-tag", HOSTED_CLUSTER, spec={}) == [], "the user's own manifest may leave it out"


def test_two_clusters_of_a_stack_do_not_share_an_identity() -> None:
    context, kinds = RuleContext(PRODUCTION), ("idstack:azure:ControlPlaneIdentity", ASSIGNMENT)
    steps = [("hc1-cpo-roles-managed", "p"), ("hc1-cpo-roles-vnet", "p"), ("hc1-b-cpo-roles-managed", "q")]
    for name, principal in steps:
        shared = assignment("r", principal=principal)
        assert found("identity-shared-between-clusters", *kinds, name=name, context=context, **shared) == []
    again = assignment("r", principal="p")
    assert found("identity-shared-between-clusters", *kinds, name="hc1-b-ccm-roles-nsg", context=context, **again) == [
        "the identity with object id p, which hc1 has as well"
    ]
    assert (
        found("identity-shared-between-clusters", *kinds, name="hc1-b-x-reader-secret", context=context, **again) == []
    )
    deployer = ("idstack:azure:OidcIssuer", ASSIGNMENT)
    assert found("identity-shared-between-clusters", *deployer, name="hc1-b-x", context=context, **again) == []


@pytest.mark.parametrize("rule", RULES)
def test_a_resource_of_another_type_is_nobodys_business(rule: PolicyName) -> None:
    assert found(rule, "azure-native:storage:StorageAccount", name="hc1-issuer-account") == []


def test_the_longest_cluster_name_decides_whose_resource_it_is() -> None:
    assert PRODUCTION.cluster_of("hc1-b-cpo") == "hc1-b"
    assert PRODUCTION.cluster_of("hc1-cpo") == "hc1"
    assert PRODUCTION.cluster_of("key-vault-user") is None
