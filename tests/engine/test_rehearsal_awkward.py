"""The awkward changes, rehearsed: what they do to running clients, and what refuses them."""

from __future__ import annotations

from pathlib import Path

import pytest

from identity.catalogue import CONTROL_PLANE
from identity.checkout import git
from tests.engine.rehearsals import Rehearsals, rehearsals
from tests.engine.test_workload_identities import self_managed

pytestmark = pytest.mark.nightly
_ON = {row.field for row in CONTROL_PLANE if row.enabled_by_default}


def test_another_role_set_and_new_clusters_of_both_ways_refuse_nobody(project: Rehearsals) -> None:
    before = project.start("prod")
    cluster = project.cluster(
        "prod", name="hc2", infraID="hc2-prod", issuerURL="https://hc2prodoidc.blob.core.windows.net/hc2prodoidc"
    )
    other = self_managed(cluster, name="hc3", infraID="hc3-prod", issuerName="hc3prodoidc")
    clusters = [*before["hostedClusters"], cluster, other]
    project.write("prod", {**before, "roles": "hypershift", "hostedClusters": clusters})

    found = project.rehearse("prod")

    assert (found.code, found.findings, found.failed()) == (0, [], {})
    assert {sign_in["identity"] for sign_in in found.document["signIns"]} == _ON
    assert all(sign_in["succeeded"] > 1 for sign_in in found.document["signIns"])
    lost = {(change["type"].rpartition(":")[2], change["operation"]) for change in found.document["replacedOrDeleted"]}
    assert lost == {("RoleAssignment", "replace"), ("RoleAssignment", "delete")}, "another role, or a wider scope"
    assert {planned["identity"] for planned in found.document["plan"] if planned["cluster"] == "hc3"} >= {
        row.field for row in CONTROL_PLANE if row.workload
    }
    assert set(found.operations("role")) == {"create", "replace", "delete"}
    assert set(found.operations("secret")) == {"create"}
    assert (found.document["secondUp"], found.document["remainingAfterDown"]) == ([], [])
    assert found.document["stacks"] == ["prod"]


def test_another_version_of_the_same_key_costs_no_sign_in(project: Rehearsals) -> None:
    before = project.start("prod")
    kms = project.cluster("prod")["kms"]
    rotated = kms["activeKey"].rpartition("/")[0] + "/" + "1" * 32
    cluster = project.cluster("prod", kms={**kms, "activeKey": rotated, "backupKey": kms["activeKey"]})
    project.write("prod", {**before, "hostedClusters": [cluster]})

    found = project.rehearse("prod", "--forbid", "create,replace,delete")

    assert (found.code, found.findings, found.failed()) == (0, [], {})
    assert found.operations("role") == found.operations("secret") == {}


def test_a_cluster_under_another_name_is_refused_while_it_is_in_use(project: Rehearsals) -> None:
    before = project.start("prod")
    renamed = project.cluster("prod", name="hc9", infraID="hc9-prod")
    project.write("prod", {**before, "hostedClusters": [renamed]})

    found = project.rehearse("prod")

    assert found.code == 1
    assert found.findings[0] == "hc1 would lose credentials in use, which allowCredentialLoss does not approve"
    assert found.document["credentialLosses"][0]["lost"] == ["all of it: hc9 has its issuerURL"]
    assert "allowCredentialLoss" in found.document["errors"][0]
    assert (found.document["plan"], found.failed(), found.document["unusedClusters"]) == ([], {}, [])


def test_the_cluster_side_is_handed_over_without_a_failed_sign_in(project: Rehearsals) -> None:
    before = project.start("stage", protect=False)
    project.write("stage", {**before, "clusterSide": "hypershift"})

    found = project.rehearse("stage")

    assert (found.code, found.findings, found.failed()) == (0, [], {})
    assert set(found.operations("class")) == set(found.operations("mount")) == {"delete"}
    assert found.operations("secret") == found.operations("role") == {}
    assert {sign_in["identity"] for sign_in in found.document["signIns"]} == _ON


def test_another_vault_needs_an_approval_and_then_refuses_nobody(project: Rehearsals) -> None:
    before = project.start("stage", protect=False)
    vault = {**before["vault"], "name": "kv-idstack-next"}
    project.write("stage", {**before, "vault": vault, "allowCredentialLoss": ["hc1"]})

    found = project.rehearse("stage")

    assert (found.code, found.findings, found.failed()) == (0, [], {})
    [loss] = found.document["credentialLosses"]
    assert (loss["approved"], len(loss["lost"])) == (True, len(_ON))
    assert {
        change["reason"] for change in found.document["replacedOrDeleted"] if change["resource"].endswith("secret")
    } == {"vaultId"}
    assert set(found.operations("secret")) == {"replace"}
    assert found.document["unusedClusters"] == ["hc1"]
    assert found.document["keptByAzure"] == [
        "vault kv-example-stage, deleted softly",
        "vault kv-idstack-next, deleted softly",
    ]


def test_a_reader_that_the_stack_makes_reads_in_its_rehearsal_too(project: Rehearsals) -> None:
    before = project.start("prod", keyVaultUser={"source": "created", "name": "reader"})
    project.write("prod", {**before, "tags": {"team": "another"}})

    found = project.rehearse("prod", "--forbid", "create,replace,delete")

    assert (found.code, found.findings, found.failed()) == (0, [], {})
    assert {new_pod["identity"] for new_pod in found.document["newPods"] if new_pod["succeeded"]} == _ON
    assert len(found.document["notRehearsed"]) == 1


def test_a_cluster_that_moves_to_a_stack_of_its_own_is_split_off_first(project: Rehearsals) -> None:
    before = project.start("prod")
    project.write("prod", {**before, "hostedClusters": None})
    own = {"vault": None, "keyVaultUser": None, "sharedStack": "organization/idstack/prod"}
    project.write("prod-hc1", {**before, **own})

    found = project.rehearse("prod", "--forbid", "create,replace,delete")

    assert (found.code, found.findings, found.failed()) == (0, [], {})
    assert found.document["stacks"] == ["prod", "prod-hc1"]
    [move] = found.document["moves"]
    assert move == {"cluster": "hc1", "from": "prod", "to": "prod-hc1"}
    # Tags say whose the cluster's applications, identities and secrets are.
    assert set(found.operations("principal")) == set(found.operations("secret")) == {"update"}
    assert found.operations("role") == {}
    assert {new_pod["identity"] for new_pod in found.document["newPods"] if new_pod["succeeded"]} == _ON
    assert "local-prod" not in str(found.document)


# What the earlier version had otherwise: identities without the tag of their stack.
_EARLIER = {
    "components/azure/managed_identity.py": (
        "tags=identity_tags(settings, args.stack_owner),",
        "tags=dict(settings.tags),",
    )
}


def test_the_program_of_an_earlier_tag_is_the_base(tmp_path: Path) -> None:
    """An upgrade of the program itself: the base is a tag whose tree is run, the configuration stays."""
    with rehearsals(tmp_path) as project:
        texts = {name: (project.root / name).read_text(encoding="utf-8") for name in _EARLIER}
        for name, (today, earlier) in _EARLIER.items():
            assert texts[name].count(today) == 1, f"{name} has changed: {today}"
            project.repository.write(name, texts[name].replace(today, earlier))
        project.start("prod")
        git(project.root, "tag", "v1")
        for name, text in texts.items():
            project.repository.write(name, text)
        project.repository.commit()

        found = project.rehearse("prod", "--base", "v1", "--forbid", "create,replace,delete")

    assert (found.code, found.findings, found.failed()) == (0, [], {})
    assert found.document["base"] == git(project.root, "rev-parse", "--short=12", "v1").strip()
    kinds = {kind for row in found.document["plan"] for kind, value in row.items() if isinstance(value, dict) and value}
    assert kinds == {"principal"}, "the tags of managed identities, and nothing else"
    assert set(found.operations("principal")) == {"update"}
    assert all(sign_in["succeeded"] > 1 for sign_in in found.document["signIns"])
    assert (found.document["secondUp"], found.document["remainingAfterDown"]) == ([], [])
