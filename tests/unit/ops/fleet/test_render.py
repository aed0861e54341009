"""The rendered tree: the same text for the same file, one object more for one cluster more."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

import pytest

from ops.commands.fleet import render
from ops.fleet.file import load_fleet
from ops.fleet.stacks import matrices
from ops.fleet.tree import HEADER, differences, tree, write
from ops.stack.errors import CommandError
from tests.unit.ops.fleet.world import AZURE, LOCAL, build, document, fleet, refusals

GOLDEN: Final = Path(__file__).parent / "golden"
_PROD: Final = "environments/prod"


def _stacks(files: dict[PurePosixPath, str]) -> dict[str, dict[str, Any]]:
    return {manifest["metadata"]["name"]: manifest for manifest in build(files, _PROD) if manifest["kind"] == "Stack"}


def test_the_tree_of_a_small_fleet_is_the_reviewed_one() -> None:
    with pytest.raises(CommandError, match="no environment of the fleet file has `operator`"):
        tree(load_fleet(LOCAL))
    files = tree(load_fleet(AZURE))
    if os.environ.get("UPDATE_GOLDEN") == "1":
        write(GOLDEN, {path: text for path, text in files.items() if path.parts[0] != "workspace"})
    reviewed = {path: text for path, text in files.items() if path.parts[0] != "workspace"}
    found = {PurePosixPath(path.relative_to(GOLDEN)): path.read_text() for path in GOLDEN.rglob("*") if path.is_file()}
    assert found == reviewed, "`make golden` writes it again: read its diff"


def test_one_cluster_more_is_one_object_more_and_nothing_else() -> None:
    changed = document()
    before = tree(fleet(changed))
    changed["environments"][1]["clusters"].append({"name": "hc6"})
    after = tree(fleet(changed))

    assert [path for path in after if after[path] != before.get(path)] == [PurePosixPath(_PROD, "stacks.yaml")]
    old, new = build(before, _PROD), build(after, _PROD)
    assert [manifest for manifest in new if manifest not in old] == [_stacks(after)["hc6-prod"]]
    assert [manifest for manifest in old if manifest not in new] == []
    old_lines, new_lines = (files[PurePosixPath(_PROD, "stacks.yaml")].splitlines() for files in (before, after))
    lines = difflib.ndiff(old_lines, new_lines)
    assert not [line for line in lines if line.startswith("- ")], "nothing of the others is written differently"


def _zeros(value: Any, place: str) -> Iterator[str]:
    """What a Go type with `omitempty` drops: false, 0 and empty texts and lists, below `place`."""
    if isinstance(value, dict | list):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _zeros(below, f"{place}.{key}")
    if value in (False, 0, "", []):
        yield place


def test_the_operator_writes_a_stack_back_as_it_was_rendered() -> None:
    for stack in _stacks(tree(load_fleet(AZURE))).values():
        spec = stack["spec"]
        pod = spec["workspaceTemplate"]["spec"]["podTemplate"]["spec"]
        dropped = [*_zeros({key: value for key, value in spec.items() if key != "config"}, "spec")]
        # Pointers are kept, and so is free JSON like the configuration.
        assert [place for place in dropped if not place.endswith("allowPrivilegeEscalation")] == []
        assert all("resources" in container for container in (*pod["initContainers"], *pod["containers"]))


def test_drift_is_a_preview_after_the_stack_that_renews_nothing() -> None:
    changed = document()
    changed["environments"][1]["operator"]["drift"] = True
    changed["environments"][1]["settings"]["credentials"] = {"keySize": 3072}
    stacks = _stacks(tree(fleet(changed)))
    drift = {name: stack["spec"] for name, stack in stacks.items() if name.endswith("-drift")}

    assert len(drift) == 6
    spec = drift["hc1-prod-drift"]
    assert (spec["stack"], spec["preview"], spec["refresh"]) == ("hc1-prod", True, True)
    assert spec["prerequisites"] == [{"name": "hc1-prod"}]
    assert spec["config"]["idstack:credentials"] == {"keySize": 3072, "renewal": "hold"}
    assert spec["updateTemplate"] == {"spec": {"expectNoChanges": True}}
    assert stacks["hc1-prod"]["spec"]["config"]["idstack:credentials"] == {"keySize": 3072}


def test_a_directory_is_compared_and_made_equal_and_files_of_others_stay(tmp_path: Path) -> None:
    changed = document()
    changed["environments"][1]["operator"]["drift"] = True
    write(tmp_path, tree(fleet(changed)))
    own = tmp_path / "environments/prod/mine.yaml"
    own.write_text("kind: Mine\n")
    files = tree(load_fleet(AZURE))

    [kustomization, dropped] = sorted(differences(tmp_path, files), key=len)
    assert "-- drift.yaml\n" in kustomization
    assert dropped.startswith("--- environments/prod/drift.yaml\n+++ /dev/null\n")
    write(tmp_path, files)
    assert differences(tmp_path, files) == []
    assert not (tmp_path / "environments/prod/drift.yaml").exists()
    assert own.exists()


def test_check_fails_with_the_difference_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError) as differs:
        render(AZURE, tmp_path, check=True)
    assert str(differs.value).endswith(
        f"in 6 files: run `.venv/bin/idstack fleet render --file {AZURE} --directory {tmp_path}`"
    )
    assert "+++ environments/prod/stacks.yaml" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())

    render(AZURE, tmp_path)
    render(AZURE, tmp_path, check=True)
    (tmp_path / "environments/prod/stacks.yaml").write_text(HEADER)
    with pytest.raises(CommandError, match="in 1 file:"):
        render(AZURE, tmp_path, check=True)


_SELF_MANAGED: Final = {"authentication": "workload-identities", "topology": "Public"}
# So that HyperShift's HostedCluster is applied.
_ZONES: Final = (
    "/subscriptions/66666666-7777-4888-8999-aaaaaaaaaaaa/resourceGroups/dns-prod/providers/Microsoft.Network"
)
_APPLIED: Final = {
    "dns": {
        "baseDomain": "contoso.net",
        "publicZoneID": f"{_ZONES}/dnsZones/contoso.net",
        "privateZoneID": f"{_ZONES}/privateDnsZones/{{cluster}}.contoso.net",
    },
    "externalDnsDomain": "control-planes.contoso.net",
    "hostedCluster": {
        "releaseImage": "quay.io/ocp:4.20.0",
        "pullSecret": "pull-secret",
        "serviceAccountSigningKey": "signing-key",
    },
}


def _mixed(**second: Any) -> dict[str, Any]:
    """`hc1` as it was, `hc2` self-managed."""
    changed = document()
    changed["environments"][1]["clusters"][1]["hostedCluster"] = _SELF_MANAGED
    changed["environments"][1]["clusters"][1].update(second)
    return changed


def _without_vault() -> dict[str, Any]:
    """An environment of clusters that keep nothing in a vault."""
    changed = document()
    prod = changed["environments"][1]
    del prod["shared"], prod["clusters"][0]["hostedCluster"]
    prod["clusterDefaults"]["hostedCluster"] |= _SELF_MANAGED
    return changed


def test_clusters_that_keep_nothing_in_a_vault_need_no_shared_stack() -> None:
    changed = _without_vault()
    stacks = _stacks(tree(fleet(changed)))

    required = {
        name: [prerequisite["name"] for prerequisite in stack["spec"].get("prerequisites", [])]
        for name, stack in stacks.items()
    }
    assert required == {
        "hc3-prod": [],
        **{name: ["hc3-prod"] for name in ("hc1-prod", "hc2-prod")},
        **{name: ["hc1-prod", "hc2-prod"] for name in ("hc4-prod", "hc5-prod")},
    }
    assert not [name for name, stack in stacks.items() if "idstack:sharedStack" in stack["spec"]["config"]]
    assert matrices(fleet(changed)[1])["shared"] is None
    prod = changed["environments"][1]
    prod["clusters"][0]["hostedCluster"] = {"authentication": "managed-identities"}
    assert refusals(changed) == [("environments[1].shared.settings.vault", "vault-missing")]
    prod |= {"clusters": [], "waves": {}}
    assert refusals(changed) == [("environments[1].clusters", "no-stack")]


def test_one_hypershift_has_clusters_of_one_way_in_a_fleet_too() -> None:
    changed = _mixed()
    changed["environments"][1]["clusterDefaults"]["hostedCluster"] |= _APPLIED
    elsewhere = _mixed(settings={"managementCluster": {"resourceGroup": "aks-own", "name": "aks-own"}})
    elsewhere["environments"][1]["clusterDefaults"]["hostedCluster"] |= _APPLIED

    place = "environments[1].clusterDefaults.hostedCluster.hostedCluster"
    assert refusals(changed) == [(place, "hosted-clusters-of-both-ways")]
    assert refusals(elsewhere) == []
