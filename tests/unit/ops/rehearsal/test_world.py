"""The throw-away local cloud: variables of its own, and nothing left however the block ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from components.preflight.azure_objects import required_objects
from components.preflight.imported_documents import imported_identities
from identity.checkout import git
from identity.clouds import LOCAL_SUBSCRIPTION_ID
from identity.naming import vault_id
from localcloud.testing.running import Seed
from localcloud.testing.running import load_seed as load
from ops.rehearsal import world
from ops.rehearsal.world import ThrowAwayCloud, as_it_is, at_commit, seed_of, throw_away
from ops.stack import local_cloud
from ops.stack.environment import local_paths
from ops.stack.errors import CommandError, RunInterruptedError
from tests.repositories import Repository
from tests.unit.ops.rehearsal.world import OWN, SUBSCRIPTION, cluster, copy_of, stack_file


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """State directories whose local cloud was asked to end."""
    found: list[Path] = []

    def run(arguments: Sequence[str], *, output: int | None = None, base: Mapping[str, str]) -> int:
        assert list(arguments) == ["stop", "--remove"]
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN, "a second Ctrl-C must not keep it from that"
        found.append(local_paths(base).state)
        return 0

    monkeypatch.setattr(local_cloud, "run", run)
    return found


def test_the_callers_own_local_cloud_is_another(stopped: list[Path]) -> None:
    before = dict(os.environ)

    with throw_away(7, {"HOME": "/home", "LOCALCLOUD_STATE_DIR": "/own", "LOCALCLOUD_CLUSTER": "apiserver"}) as made:
        os.write(made.output, b"".join(b"line %d\n" % number for number in range(40)))
        lines = made.last_lines().splitlines()
        assert (lines[-1], len(lines)) == ("line 39", world._LAST_LINES), "the end of the log tells why"
        assert made.environ == {
            "HOME": "/home",
            "LOCALCLOUD_STATE_DIR": str(made.directory / "state"),
            "LOCALCLOUD_FAULTS": '{"seed": 7}',
        }
        assert os.environ == before

    assert stopped == [made.directory / "state"]
    assert not made.directory.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_nothing_either(stopped: list[Path], number: signal.Signals) -> None:
    handlers = [signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)]
    kept: list[ThrowAwayCloud] = []

    def interrupted() -> None:
        with throw_away(1, {}) as made:
            kept.append(made)
            signal.raise_signal(number)

    with pytest.raises((KeyboardInterrupt, RunInterruptedError)):
        interrupted()

    assert len(stopped) == 1
    assert not kept[0].directory.exists()
    assert [signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)] == handlers


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.made(tmp_path / "top")


@pytest.mark.parametrize("below", ["", "identity/stack"], ids=["top", "below the top"])
def test_a_commit_is_laid_out_without_a_trace_in_the_repository(tmp_path: Path, below: str) -> None:
    repository = Repository.made(tmp_path / "top", below)
    before = repository.head
    repository.write("__main__.py", "later")
    repository.commit()

    tree = at_commit(repository.root, before, tmp_path / "base")

    assert (tree.directory / "__main__.py").read_text() == ""
    assert tree.name == before[:12]
    assert list(tree.configurations()) == ["dev"]
    assert os.access(tree.directory / ".venv", os.X_OK)
    assert len(git(repository.root, "worktree", "list").splitlines()) == 1
    assert git(repository.root, "status", "--porcelain") == ""


def test_the_checkout_has_what_is_not_committed_and_nothing_ignored(repository: Repository, tmp_path: Path) -> None:
    repository.write("__main__.py", "not committed")
    repository.write("components/new.py", "new")
    repository.write("hc1.credential", "secret")

    tree = as_it_is(repository.root, tmp_path / "head")

    assert (tree.directory / "__main__.py").read_text() == "not committed"
    assert (tree.directory / "components/new.py").exists()
    assert not (tree.directory / "hc1.credential").exists()
    (tree.directory / "Pulumi.dev.yaml").write_text("config: [\n")
    with pytest.raises(CommandError, match=r"Pulumi\.dev\.yaml at checkout"):
        tree.configurations()


def test_other_packages_are_installed_for_a_commit(repository: Repository, tmp_path: Path) -> None:
    repository.write("tools/setup", "#!/bin/sh\nmkdir .venv\n")
    (repository.root / "tools/setup").chmod(0o755)
    before = repository.commit()
    repository.write("requirements.txt", "pulumi==3.260.0\n")
    repository.commit()

    tree = at_commit(repository.root, before, tmp_path / "base")

    assert not (tree.directory / ".venv").is_symlink()
    assert (tree.directory / ".venv").is_dir()


@pytest.mark.parametrize("commit", ["origin/main", "0" * 40, "--output=x"])
def test_an_unknown_commit_is_named_with_what_to_do(repository: Repository, tmp_path: Path, commit: str) -> None:
    (tmp_path / "none").mkdir()

    for root in (repository.root, tmp_path / "none"):
        with pytest.raises(CommandError, match=f"{root} is no .* with the commit {commit}: .*`fetch-depth: 0`"):
            at_commit(root, commit, tmp_path / "base")


def test_a_link_that_leads_elsewhere_is_refused_by_name(repository: Repository, tmp_path: Path) -> None:
    (repository.root / "elsewhere").symlink_to("/etc/hostname")
    commit = repository.commit()

    with pytest.raises(CommandError, match="elsewhere"):
        at_commit(repository.root, commit, tmp_path / "base")


_NETWORK = "providers/Microsoft.Network"
# The type of the document that answers each function, and how its last argument is found in it.
_TYPES = {
    "network:getVirtualNetwork": "Microsoft.Network/virtualNetworks",
    "network:getSubnet": "Microsoft.Network/virtualNetworks/subnets",
    "network:getNetworkSecurityGroup": "Microsoft.Network/networkSecurityGroups",
    "network:getLoadBalancer": "Microsoft.Network/loadBalancers",
    "dns:getZone": "Microsoft.Network/dnszones",
    "privatedns:getPrivateZone": "Microsoft.Network/privateDnsZones",
    "privatedns:getVirtualNetworkLink": "Microsoft.Network/privateDnsZones/virtualNetworkLinks",
    "storage:getStorageAccount": "Microsoft.Storage/storageAccounts",
    "containerregistry:getRegistry": "Microsoft.ContainerRegistry/registries",
}
# No subnet of the nodes is named beside it.
OPEN = {"name": "kv-own", "defaultAction": "Allow"}


def seed_for(*documents: dict[str, Any]) -> Seed:
    """The seed of these files, as the local cloud reads it."""
    return Seed.model_validate(seed_of([copy_of(document).settings for document in documents]))


def named(seed: Seed, function: str, arguments: dict[str, str]) -> bool:
    """Whether the seed has what a look-up asks for."""
    group = arguments.pop("resourceGroupName").lower()
    name = "/".join(arguments.values())
    known: dict[str, Any] = {
        "containerservice:getManagedCluster": seed.clusters,
        "keyvault:getVault": seed.vaults,
        "managedidentity:getUserAssignedIdentity": seed.managed_identities,
        **{
            lookup: [resource for resource in seed.resources if resource.type == kind]
            for lookup, kind in _TYPES.items()
        },
    }
    if function == "resources:getResourceGroup":
        return group in {resource_group.name.lower() for resource_group in seed.resource_groups}
    return any((resource.name, resource.resource_group.lower()) == (name, group) for resource in known[function])


def missing(document: dict[str, Any]) -> list[str]:
    """The look-ups of a stack that its own seed would not answer."""
    settings = copy_of(document).settings
    vault = vault_id(settings.subscription_id, settings.resource_group, "kv")
    imported = [each for one in imported_identities(settings, vault) for each in (one.managed, one.secret)]
    objects = (*required_objects(settings, None, vault), *imported)
    seed = seed_for(document)
    lookups = [each.lookup for each in objects if each.place[-1] != "secretName"]
    return [each.description for each in lookups if not named(seed, each.function, dict(each.arguments))]


@pytest.mark.parametrize("stack", ["dev", "stage", "prod"])
def test_the_stacks_of_this_project_find_all_that_they_look_up(stack: str, tmp_path: Path) -> None:
    file = tmp_path / "seed.yaml"
    file.write_text(yaml.safe_dump(seed_of([copy_of(stack_file(stack)).settings])), encoding="utf-8")

    assert load(file).clusters[0].name == "example-aks"
    assert missing(stack_file(stack)) == []


def _id(group: str, kind: str, name: str) -> str:
    return f"{SUBSCRIPTION}/resourceGroups/{group}/providers/{kind}/{name}"


_GROUPS = st.sampled_from(["one", "two", "Two", "three"])


@st.composite
def _clusters(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """A hosted cluster with everything, or little, that its configuration may name; groups are shared or not."""
    vnet = _id(draw(_GROUPS), "Microsoft.Network/virtualNetworks", draw(st.sampled_from(["net", f"{name}-net"])))
    found = cluster(
        name=name,
        infraID=name,
        issuerURL=f"https://issuer.example.com/{name}",
        resourceGroup=draw(_GROUPS),
        location=draw(st.sampled_from(["eastus", "westeurope"])),
        vnetID=vnet,
        subnetID=f"{vnet}/subnets/{name}",
        securityGroupID=_id(draw(_GROUPS), "Microsoft.Network/networkSecurityGroups", f"{name}-nsg"),
        dnsZoneResourceGroup=draw(_GROUPS),
    )
    zones = {
        "baseDomain": "example.com",
        "publicZoneID": _id(found["dnsZoneResourceGroup"], "Microsoft.Network/dnszones", "example.com"),
        "privateZoneID": _id(found["resourceGroup"], "Microsoft.Network/privateDnsZones", f"{name}.example.com"),
    }
    managed = _id(draw(_GROUPS), "Microsoft.ManagedIdentity/userAssignedIdentities", f"{name}-ingress")
    extra: dict[str, Any] = {
        "dns": zones,
        "identities": {
            "ingress": {"source": "managed-identity", "resourceId": managed, "credential": {"file": "x.json"}}
        },
        "kms": {
            "activeKey": {"keyVaultName": f"kv-{name}", "keyName": "etcd", "keyVersion": "1" * 32},
            "keyVaultResourceGroup": draw(_GROUPS),
        },
    }
    del found["kms"]
    chosen = draw(st.sets(st.sampled_from(sorted(extra))))
    return {**found, **{key: extra[key] for key in chosen}}


def test_the_subnet_refers_to_the_named_route_table_and_nat_gateway() -> None:
    attached = {
        "routeTableID": _id("hub", "Microsoft.Network/routeTables", "routes"),
        "natGatewayID": _id("hub", "Microsoft.Network/natGateways", "nat"),
    }
    plain, changed = (
        stack_file(hostedClusters=[hosted_cluster], vault=OPEN) for hosted_cluster in (cluster(), cluster(**attached))
    )
    seed = seed_for(plain, changed)

    [subnet] = [resource.properties for resource in seed.resources if resource.type.endswith("/subnets")]
    referred = {field: subnet[field]["id"].rpartition("/")[2] for field in ("routeTable", "natGateway")}
    assert referred == {"routeTable": "routes", "natGateway": "nat"}
    assert "networkSecurityGroup" in subnet
    assert {"routes", "nat"} <= {resource.name for resource in seed.resources}


def test_groups_engines_and_existing_identities_are_as_the_configuration_has_them() -> None:
    user = {"source": "existing", "clientId": OWN, "objectId": OWN.replace("5f0c", "6a1d")}
    plain = stack_file(hostedClusters=[cluster(location="westus3")], keyVaultUser=user)
    seed, blocking = seed_for(plain), seed_for(plain, stack_file(blockInstanceMetadata=True))

    locations = {group.name: group.location for group in seed.resource_groups}
    assert (locations["hc1-managed"], seed.location) == ("westus3", "westeurope")
    policies = [{managed_cluster.network_policy for managed_cluster in one.clusters} for one in (seed, blocking)]
    assert policies == [{"none"}, {"azure"}]
    [identity] = seed.managed_identities
    assert (identity.client_id, identity.object_id, identity.on_nodes) == (OWN, user["objectId"], True)


@given(st.tuples(_clusters("hc1"), _clusters("hc2")))
def test_what_base_and_head_name_both_exists_once(clusters: tuple[dict[str, Any], ...]) -> None:
    base, head = (stack_file(hostedClusters=list(chosen)) for chosen in (clusters[:1], clusters))
    assert missing(head) == [], "whatever a configuration names is seeded"
    seed = seed_for(base, head)

    for part in (seed.resource_groups, seed.vaults, seed.managed_identities, seed.clusters, seed.resources):
        keys = [
            (getattr(one, "type", ""), getattr(one, "resource_group", "").lower(), one.name.lower()) for one in part
        ]
        assert len(keys) == len({tuple(map(str.lower, key)) for key in keys})


def test_what_only_optional_identities_use_is_seeded() -> None:
    registry = _id("images", "Microsoft.ContainerRegistry/registries", "images1")
    backups = _id("backups", "Microsoft.Storage/storageAccounts", "backups1")
    zone = _id("public", "Microsoft.Network/dnszones", "example.org")
    changed = cluster(
        managedIdentities=["acrPull", "externalDNS"], containerRegistryID=registry, externalDnsZoneID=zone
    )
    changed |= {"backupStorageAccountID": backups, "identities": {"etcdBackup": {"enabled": True}}}

    assert missing(stack_file(hostedClusters=[changed])) == []


def test_what_the_stack_makes_is_not_seeded() -> None:
    zone = _id("dns-dev", "Microsoft.Network/dnszones", "example.com")
    made = {"infrastructure": "create", "name": "hc1", "infraID": "hc1", "issuerURL": "https://i.example.com/hc1"}
    create = {"nodePool": {"vmSize": "Standard_D4s_v5"}, "adminGroupObjectIDs": [OWN]}
    creation = {"resourceGroup": "aks", "name": "aks", "create": create}
    dns = {"baseDomain": "example.com", "publicZoneID": zone}
    seed = seed_for(stack_file(hostedClusters=[made | {"dns": dns}], managementCluster=creation, vault=OPEN))

    assert [resource.type for resource in seed.resources] == ["Microsoft.Network/dnszones"]
    assert seed.clusters == ()
    assert OPEN["name"] not in {vault.name for vault in seed.vaults}
    assert [group.object_id for group in seed.groups] == [OWN]


def test_the_nodes_carry_a_key_vault_user_that_the_stack_makes() -> None:
    seed = seed_for(stack_file(keyVaultUser={"source": "created", "name": "reader"}))

    [nodes] = [resource for resource in seed.resources if resource.type == "Microsoft.Compute/virtualMachineScaleSets"]
    assert nodes.identity is not None
    [carried] = nodes.identity["userAssignedIdentities"]
    own = _id(nodes.resource_group, "Microsoft.ManagedIdentity/userAssignedIdentities", "reader")
    assert carried == own.replace(OWN, LOCAL_SUBSCRIPTION_ID)
    assert "reader" not in {managed_identity.name for managed_identity in seed.managed_identities}, "the stack makes it"
