"""A hosted cluster that HyperShift's scripts made is adopted: nothing is deleted or replaced, no sign-in fails."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from identity.credentials.document import decode
from tests.engine.adoption import SCRIPTED, Adoption, adopted_cluster
from tests.engine.hypershift_scripts import VAULT, HyperShiftScripts

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adoption]:
    """By the scripts' requests; `make clients` runs the scripts themselves."""
    root, directory = tmp_path_factory.mktemp("stack"), tmp_path_factory.mktemp("scripts")
    with adopted_cluster(HyperShiftScripts, root, directory) as adoption:
        yield adoption


def test_the_next_up_deletes_and_replaces_nothing(adopted: Adoption) -> None:
    assert set(adopted.steps.values()) == {"create", "update"}
    assert adopted.before <= adopted.stack.inventory()


def test_the_next_up_creates_no_application_and_no_identity_again(adopted: Adoption) -> None:
    created = {name for name, operation in adopted.steps.items() if operation == "create"}
    kinds = ("-entra-application", "-entra-principal", "-identity", "-vault")

    # The key-vault-user's role is on the vault itself, the scripts' is on its resource group.
    assert {name for name in created if name.endswith(kinds)} - {"key-vault-user-roles-vault"} == {
        "hc1-kms-entra-application",
        "hc1-kms-entra-principal",
    }


def test_the_hosted_cluster_goes_on_with_its_client_ids_and_secrets(adopted: Adoption) -> None:
    named = json.loads(adopted.scripts.control_plane_file.read_text(encoding="utf-8"))
    found = adopted.stack.control_plane
    data_plane = adopted.stack.outputs["hostedClusters"]["hc1"]["dataPlane"]

    for row in SCRIPTED:
        for key in ("clientID", "credentialsSecretName", "objectEncoding"):
            assert found[row.field][key] == named[row.field][key]
    lines = adopted.scripts.data_plane_file.read_text(encoding="utf-8")
    assert all(f'"{field}": {client_id}' in lines for field, client_id in data_plane.items())


def test_no_sign_in_fails_while_up_adopts_and_renews(adopted: Adoption) -> None:
    assert adopted.client.failures == []
    assert len(adopted.client.sign_ins) == 2 * len(SCRIPTED), "with the scripts' certificates, then with the stack's"


@pytest.mark.parametrize("row", SCRIPTED, ids=lambda row: row.field)
def test_the_earlier_and_the_new_credential_both_sign_in(adopted: Adoption, row: Any) -> None:
    client_id = adopted.stack.control_plane[row.field]["clientID"]
    secret = adopted.stack.control_plane[row.field]["credentialsSecretName"]
    new = decode(adopted.scripts.vault("GET", VAULT, f"/secrets/{secret}")["value"])
    earlier = adopted.scripts.credential_pem(row.secret_stem)

    assert new.thumbprint == adopted.stack.control_plane[row.field]["thumbprint"]
    assert new.key_material.pem() != earlier
    assert adopted.signs_in(client_id, earlier)
    assert adopted.signs_in(client_id, new.key_material.pem())


def test_the_scripts_document_stays_readable_as_the_version_before(adopted: Adoption) -> None:
    secret = adopted.stack.control_plane[SCRIPTED[0].field]["credentialsSecretName"]
    versions = adopted.scripts.vault("GET", VAULT, f"/secrets/{secret}/versions")["value"]

    assert [version["attributes"]["enabled"] for version in versions] == [True, True]


def test_a_preview_afterwards_shows_nothing(adopted: Adoption) -> None:
    assert adopted.stack.preview() == {}


def test_the_report_says_what_the_scripts_do_not_make(adopted: Adoption) -> None:
    lines = {finding["identity"]: finding for finding in adopted.report["findings"]}

    assert lines["kms"]["differs"] == "the scripts create none"
    assert lines["velero"]["nextUp"] == "leaves it alone"
    for row in SCRIPTED:
        assert "PKCS#12; document without renew_after, cannot_renew_after" in lines[row.field]["differs"]
        assert "another" not in lines[row.field]["differs"], "every role is the stack's already"


def test_a_second_run_finds_everything_in_the_state(adopted: Adoption) -> None:
    again = adopted.run_again()

    assert again["configured"] == {}
    assert json.loads(adopted.import_file.read_text(encoding="utf-8"))["resources"] == []
    assert lines_of(again) == {"nothing: the state has it"}


def lines_of(report: Mapping[str, Any]) -> set[str]:
    """What the next `up` does with each identity of the files."""
    fields = {row.field for row in SCRIPTED}
    return {finding["nextUp"] for finding in report["findings"] if finding["identity"] in fields}
