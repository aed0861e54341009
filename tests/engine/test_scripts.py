"""A hosted cluster that HyperShift's scripts made is adopted: nothing is deleted or replaced, no sign-in fails."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from identity.catalogue_rows import ControlPlaneIdentity
from tests.engine.adoption import SCRIPTED, Adoption, adopted_cluster
from tests.engine.hypershift_scripts import VAULT, HyperShiftScripts

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adoption]:
    """By the scripts' requests; `make clients` runs the scripts themselves."""
    root, directory = tmp_path_factory.mktemp("stack"), tmp_path_factory.mktemp("scripts")
    with adopted_cluster(HyperShiftScripts, root, directory) as adoption:
        yield adoption


def test_the_next_up_makes_and_takes_nothing_again_and_costs_no_sign_in(adopted: Adoption) -> None:
    assert set(adopted.steps.values()) == {"create", "update"}
    assert adopted.before <= adopted.stack.inventory()
    created = {name for name, operation in adopted.steps.items() if operation == "create"}
    kinds = ("-entra-application", "-entra-principal", "-identity", "-vault")
    # The key-vault-user's role is on the vault itself, the scripts' is on its resource group.
    assert {name for name in created if name.endswith(kinds)} - {"key-vault-user-roles-vault"} == {
        "hc1-kms-entra-application",
        "hc1-kms-entra-principal",
    }
    assert adopted.client.failures == []
    assert len(adopted.client.sign_ins) == 2 * len(SCRIPTED), "with the scripts' certificates, then with the stack's"
    assert adopted.stack.preview() == {}


def test_the_hosted_cluster_goes_on_with_its_client_ids_and_secrets(adopted: Adoption) -> None:
    named = json.loads(adopted.scripts.control_plane_file.read_text(encoding="utf-8"))
    found = adopted.stack.control_plane
    data_plane = adopted.stack.outputs["hostedClusters"]["hc1"]["dataPlane"]

    for row in SCRIPTED:
        for key in ("clientID", "credentialsSecretName", "objectEncoding"):
            assert found[row.field][key] == named[row.field][key]
    lines = adopted.scripts.data_plane_file.read_text(encoding="utf-8")
    assert all(f'"{field}": {client_id}' in lines for field, client_id in data_plane.items())


@pytest.mark.parametrize("row", SCRIPTED, ids=lambda row: row.field)
def test_the_earlier_and_the_new_credential_both_sign_in(adopted: Adoption, row: ControlPlaneIdentity) -> None:
    adopted.require_both_sign_in(row)

    secret = adopted.stack.control_plane[row.field]["credentialsSecretName"]
    versions = adopted.scripts.vault("GET", VAULT, f"/secrets/{secret}/versions")["value"]
    assert [version["attributes"]["enabled"] for version in versions] == [True, True], "the earlier stays readable"


def test_the_report_says_what_the_scripts_do_not_make_and_a_second_one_that_all_is_done(adopted: Adoption) -> None:
    lines = {finding["identity"]: finding for finding in adopted.report["findings"]}

    assert lines["kms"]["differs"] == "the scripts create none"
    assert lines["velero"]["nextUp"] == "leaves it alone"
    for row in SCRIPTED:
        assert "PKCS#12; document without renew_after, cannot_renew_after" in lines[row.field]["differs"]
        assert "another" not in lines[row.field]["differs"], "every role is the stack's already"

    again = adopted.run_again()
    fields = {row.field for row in SCRIPTED}

    assert again["configured"] == {}
    assert json.loads(adopted.import_file.read_text(encoding="utf-8"))["resources"] == []
    assert {finding["nextUp"] for finding in again["findings"] if finding["identity"] in fields} == {
        "nothing: the state has it"
    }
