"""A seed file: what it may say, and that what it says is the tenant's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from localcloud.core.state_directory import StateDirectory
from localcloud.core.store import SEAL_KEY_BYTES, Store
from localcloud.runtime.environment import Prepared, prepare
from localcloud.runtime.seed import seed
from localcloud.runtime.seed_errors import InvalidSeedError, SeedConflictError
from localcloud.runtime.seed_file import DEFAULT, Seed, choose, load

TABLES: Any = yaml.safe_load(Path(__file__).with_name("seed_mistakes.yaml").read_text(encoding="utf-8"))
SMALL: dict[str, Any] = TABLES["small"]
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the small seed with other values; returns the file."""

    def written(**others: Any) -> Path:
        file = tmp_path / "seed.yaml"
        given = {name: value for name, value in {**SMALL, **others}.items() if value is not None}
        file.write_text(yaml.safe_dump(given), encoding="utf-8")
        return file

    return written


@contextmanager
def seeded(folder: Path, wanted: Seed) -> Iterator[Prepared]:
    """A local cloud with the seed."""
    state = StateDirectory(folder / "state")
    prepared = prepare(state, wanted)
    try:
        seed(prepared)
        yield prepared
    finally:
        prepared.close()
        state.remove()


def in_arm(prepared: Prepared) -> list[dict[str, Any]]:
    return [document for _, document in prepared.store.items("arm")]


@pytest.mark.parametrize(("others", "place", "problem"), TABLES["mistakes"])
def test_a_mistake_is_named_by_its_place(write: Write, others: dict[str, Any], place: str, problem: str) -> None:
    file = write(**others)

    with pytest.raises(InvalidSeedError) as refused:
        load(file)

    [line] = str(refused.value).splitlines()
    assert line.startswith(f"{file}: {place}: ")
    assert problem in line


def test_all_mistakes_are_reported_at_once(write: Write) -> None:
    with pytest.raises(InvalidSeedError) as refused:
        load(write(location=None, users=[{"displayName": 1}]))

    places = [line.split(": ")[1] for line in str(refused.value).splitlines()]
    assert places == ["location", "users[0].userPrincipalName", "users[0].displayName"]


@pytest.mark.parametrize("text", ["", "- a", "a: [", "\t"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "seed.yaml"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(InvalidSeedError, match=f"^{file}: "):
        load(file)


def test_what_is_made_is_of_the_seeds_tenant(write: Write, tmp_path: Path) -> None:
    vaults = [{"name": "kv-team", "resourceGroup": "team"}]
    wanted = load(write(vaults=vaults, deployerRoles=["Reader"]))
    with seeded(tmp_path, wanted) as prepared:
        assert seed(prepared) == 0
        made = in_arm(prepared)

    assert prepared.environment.tenant_id == wanted.tenant_id
    assert {resource["id"].split("/")[2] for resource in made} == {wanted.subscription_id}
    assert prepared.cloud.tokens.issuer == f"https://sts.windows.net/{wanted.tenant_id}/"
    [vault] = [resource for resource in made if resource["type"] == "Microsoft.KeyVault/vaults"]
    assert (vault["properties"]["tenantId"], vault["location"]) == (wanted.tenant_id, "westeurope")


def test_a_document_of_arm_carries_the_identity_that_it_is_given(write: Write, tmp_path: Path) -> None:
    carried = {"type": "UserAssigned", "userAssignedIdentities": {"/subscriptions/s/not-made-yet": {}}}
    nodes = {"type": "Microsoft.Compute/virtualMachineScaleSets", "name": "nodes", "resourceGroup": "team"}
    wanted = load(write(resources=[{**nodes, "identity": carried}, {**nodes, "name": "bare"}]))
    with seeded(tmp_path, wanted) as prepared:
        made = {resource["name"]: resource for resource in in_arm(prepared)}

    assert made["nodes"]["identity"] == carried
    assert "identity" not in made["bare"]


def test_the_seed_is_kept_and_its_tenant_is_fixed(write: Write, tmp_path: Path) -> None:
    store = Store(tmp_path / "state.sqlite", bytes(SEAL_KEY_BYTES))
    first = load(write())
    larger = load(write(resourceGroups=["team", "more"]))

    assert choose(store, first) == choose(store) == first
    assert choose(store, larger) == choose(store) == larger
    with pytest.raises(SeedConflictError, match=f"has the tenant {first.tenant_id} with"):
        choose(store, load(DEFAULT))
    store.close()


def test_without_a_seed_it_is_the_packages_own(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.sqlite", bytes(SEAL_KEY_BYTES))

    assert choose(store) == load(DEFAULT) == Seed.model_validate(yaml.safe_load(DEFAULT.read_text(encoding="utf-8")))
    store.close()


def test_groups_have_places_and_identities_ids_of_their_own(write: Write, tmp_path: Path) -> None:
    ids = {"clientId": SMALL["tenantId"], "objectId": SMALL["subscriptionId"]}
    wanted = load(
        write(
            resourceGroups=["team", {"name": "far", "location": "westus3"}],
            managedIdentities=[{"name": "reader", "resourceGroup": "far", "onNodes": True, **ids}],
            clusters=[{"name": "aks", "resourceGroup": "team"}],
        )
    )
    with seeded(tmp_path, wanted) as prepared:
        made, known = in_arm(prepared), prepared.store.listed()

    places = {
        resource["name"]: resource["location"]
        for resource in made
        if resource["type"] == "Microsoft.Resources/resourceGroups"
    }
    assert (places["team"], places["far"]) == ("westeurope", "westus3")
    [nodes] = [resource for resource in made if resource["type"] == "Microsoft.Compute/virtualMachineScaleSets"]
    attached = {
        full_id.rpartition("/")[2]: user_assigned_identity
        for full_id, user_assigned_identity in nodes["identity"]["userAssignedIdentities"].items()
    }
    assert attached["reader"] == {"clientId": ids["clientId"], "principalId": ids["objectId"]}
    assert len(attached) == 2
    assert {("arm", resource["id"].lower()) for resource in made} <= set(known)
