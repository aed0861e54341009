"""What the local cloud and the product each have a copy of: neither imports the other, and the copies agree."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

import yaml

from identity import clouds, roles
from identity.aks import login
from identity.aks.permissions import cluster_wide_manifests
from identity.azure.deployer_rights import catalogue_roles, condition
from identity.roles import RBAC_ADMINISTRATOR_ROLE
from localcloud.testing.azure import built_in_roles
from localcloud.testing.running import DEFAULT_SEED as DEFAULT
from localcloud.testing.running import DEPLOYER
from localcloud.testing.running import clouds as served
from localcloud.testing.running import load_seed as load
from tests.architecture.source import ROOT

SEED: Final = load(ROOT / "cloud/emulated/seed.yaml")


def test_the_record_has_the_same_members_on_both_sides() -> None:
    own = {field.name: field.type for field in fields(clouds.LocalEnvironment)}

    assert served.LocalEnvironment.__annotations__.keys() - {"model_config"} == own.keys()
    assert set(own.values()) == {"str"} == set(served.LocalEnvironment.__annotations__.values())


def test_azures_clouds_have_the_same_names_on_both_sides() -> None:
    names = {field.name for field in fields(served.Cloud)} | {"vault_scope", "managed_hsm_suffix"}

    assert {name: {name: getattr(cloud, name) for name in names} for name, cloud in served.CLOUDS.items()} == {
        name: {name: getattr(cloud, name) for name in names} for name, cloud in clouds.CLOUDS.items()
    }
    assert served.DEFAULT_CLOUD == clouds.DEFAULT_CLOUD


def test_yaml_is_read_and_written_by_the_same_lines_on_both_sides() -> None:
    own, other = (ROOT / room / "yaml_text.py" for room in ("identity", "cloud/localcloud/core"))

    assert other.read_text(encoding="utf-8") == own.read_text(encoding="utf-8")


def test_a_client_of_the_local_cloud_takes_the_same_addresses() -> None:
    values = {name: f"https://{name}" for name in served.LocalEnvironment.model_fields}
    own = clouds.local_cloud(clouds.LocalEnvironment(**values))
    other = served.local_cloud(served.LocalEnvironment(**values))

    assert vars(other).items() <= vars(own).items()
    assert own.vault_request("kv") == other.vault_request("kv")


def test_the_tenant_and_the_applications_of_aks_are_the_same() -> None:
    own = (clouds.LOCAL_TENANT_ID, clouds.LOCAL_SUBSCRIPTION_ID)

    assert [(seed.tenant_id, seed.subscription_id) for seed in (SEED, load(DEFAULT))] == [own, own]
    assert own == (served.LOCAL_TENANT_ID, served.LOCAL_SUBSCRIPTION_ID)
    assert (served.AKS_SERVER_APP_ID, served.AKS_CLIENT_APP_ID) == (login.AKS_SERVER_APP_ID, login.AKS_CLIENT_APP_ID)


def test_a_role_that_the_program_assigns_has_the_same_name_on_both_sides() -> None:
    own = {role.guid: role.name for role in vars(roles).values() if isinstance(role, roles.Role)}

    assert {guid: built_in_roles()[guid].role_name for guid in own} == own


def test_the_local_deployer_assigns_what_the_deployer_may_assign() -> None:
    """`idstack rbac --azure` prints the same condition, with as many of the roles as a configuration needs."""
    [limited] = [deployer_role for deployer_role in SEED.deployer_roles if not isinstance(deployer_role, str)]

    assert limited.role == RBAC_ADMINISTRATOR_ROLE.name
    assert limited.condition == condition(catalogue_roles(), catalogue_roles())
    assert "User Access Administrator" not in SEED.deployer_roles


def test_the_local_deployers_role_is_the_one_that_idstack_rbac_prints() -> None:
    [group] = SEED.groups
    wanted = cluster_wide_manifests(group=group.object_id, user=DEPLOYER.name)

    assert list(SEED.kubernetes_objects) == wanted, yaml.safe_dump(wanted)
