"""What another stack has is neither adopted nor deleted, whatever its infraID or its stack's name is."""

from __future__ import annotations

import shlex
import shutil
from typing import Final

import pytest

from tests.engine.other_stacks import a_copy, in_azure
from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack

pytestmark = pytest.mark.nightly

_AUTHORIZATION: Final = "2022-04-01"
_ASSIGNMENT: Final = "azure-native:authorization:RoleAssignment"


def principals(stack: LocalStack) -> dict[str, str]:
    """Whom each role assignment of the stack is for, in Azure, by its id."""
    somebody = OutOfBand(stack)
    ids = [resource["id"] for resource in stack.resources() if resource["type"] == _ASSIGNMENT]
    return {id_: somebody.arm("GET", id_, _AUTHORIZATION)["properties"]["principalId"] for id_ in ids}


def test_a_second_cluster_with_an_infra_id_takes_no_role_of_the_first(own: LocalStack) -> None:
    before, roles = in_azure(own), principals(own)
    copy = a_copy(own)

    refused = [copy.idstack(command, "--stack", copy.name, check=False) for command in ("preview", "up")]

    assert [process.returncode for process in refused] == [1, 1]
    assert all(
        'hc2: infraID is "hc1-infra", which a hosted cluster of the stack local has' in process.stderr
        for process in refused
    )
    assert (copy.resources(), in_azure(own)) == ([], before)

    with copy.configured(sharedStack="organization/idstack/nowhere"):
        nowhere = copy.up(check=False)
    assert 'found:    "organization/idstack/nowhere", which does not exist' in nowhere.stdout + nowhere.stderr
    assert copy.up(check=False).returncode != 0, "nobody asks a bare `pulumi up`"
    assert principals(own) == roles
    taken = own.resource("hc1-data-plane-disk-roles-managed")["id"]
    adopt = ("import", "--stack", copy.name, _ASSIGNMENT, "hc2-data-plane-disk-roles-managed", taken)
    for words in (("recover", "--stack", copy.name), adopt):
        refusal = copy.idstack(*words, check=False)
        assert refusal.returncode == 1, shlex.join(words)
        assert "the stack local has" in refusal.stderr
    assert principals(own) == roles
    assert own.preview() == {}
    assert own.idstack("doctor").returncode == 0


def test_one_recover_brings_a_lost_state_back(own: LocalStack) -> None:
    before, owner = in_azure(own), own.outputs["ownerId"]
    with own.kubernetes() as objects:
        secrets = objects.get("/api/v1/namespaces/clusters-hc1/secrets").raise_for_status().json()["items"]
    backend = own.state / "pulumi/backend/.pulumi"
    shutil.rmtree(backend)

    recovered = own.idstack("recover", "--owner", owner).stdout

    assert in_azure(own).keys() == before.keys()
    assert "replac" not in recovered
    written = "".join(file.read_text(encoding="utf-8") for file in backend.rglob("*.json*"))
    plain = {value for secret in secrets for value in secret["data"].values() if value in written}
    assert (bool(secrets), plain) == (True, set())
    assert own.preview() == own.up_with_steps() == {}
