"""What is sent to Azure, against the models of Microsoft's libraries: every type, every shape of the configuration."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

from localcloud.testing.hosted_clusters import ABSENT, changed
from localcloud.testing.plugins import AZURE_NATIVE
from tests.unit.components import world
from tests.unit.components.program import run_program
from tests.unit.components.sent_bodies import Request, requests, sent_bodies
from tools import clients
from tools.steps import ROOT

_CHECK: Final = ROOT / "tests/clients/request_bodies.py"
_SECRET: Final = "azure-native:keyvault:Secret"
Check = Callable[[list[Request]], list[list[str]]]


@pytest.fixture(scope="module")
def check() -> Check:
    """The problems of each request."""
    command = [clients.azure_models(), _CHECK]

    def run(sent: list[Request]) -> list[list[str]]:
        done = subprocess.run(command, input=json.dumps(sent), capture_output=True, text=True, check=True)
        found: list[list[str]] = json.loads(done.stdout)
        return found

    return run


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> list[Request]:
    folder = tmp_path_factory.mktemp("bodies")
    (folder / "kubeconfig").write_text(world.KUBECONFIG, encoding="utf-8")
    # No stack has it, but the plugin serves it.
    secret = {"resourceGroupName": "identity-dev", "vaultName": "kv-idstack-dev", "secretName": "one"}
    properties = {"value": "document", "contentType": "text/plain", "attributes": {"notBefore": 1, "expires": 9}}
    made = requests(AZURE_NATIVE[_SECRET], {**secret, "properties": properties})
    return [*sent_bodies(partial(run_program, folder)), *made]


def test_every_type_that_the_plugin_serves_is_sent(sent: list[Request]) -> None:
    assert {request["type"] for request in sent} == set(AZURE_NATIVE)


def test_the_libraries_take_every_request(sent: list[Request], check: Check) -> None:
    refused = {
        f"{request['type']} {problem}" for request, found in zip(sent, check(sent), strict=True) for problem in found
    }

    # `cloud/PLUGINS.md` names the one type whose version no library has.
    assert refused == {
        "azure-native:resources:ResourceGroup the API version: 2024-03-01 is not that of api-version=2024-07-01"
    }


def test_what_no_library_can_check_is_in_the_page(sent: list[Request]) -> None:
    page = (ROOT / "cloud/PLUGINS.md").read_text(encoding="utf-8")
    section = page.partition("\n### What no library checks\n")[2].partition("\n#")[0]
    unchecked = set(re.findall(r"^\| `(azure-native:[^`]+)`", section, re.MULTILINE))

    assert "azure-native:resources:ResourceGroup" in unchecked
    assert unchecked <= {request["type"] for request in sent}


# Type, member, and the value that makes the problem at its place.
_BROKEN: Final = (
    ("keyvault:Vault", "properties.enableRbacAuthorisation", True, "VaultProperties has no such member"),
    ("keyvault:Vault", "properties.softDeleteRetentionInDays", "90", "str instead of int"),
    ("managedidentity:FederatedIdentityCredential", "properties.audiences", "openshift", "str instead of an array"),
    ("keyvault:Vault", "properties.tenantId", ABSENT, "it is required"),
    ("keyvault:Vault", "properties.networkAcls.defaultAction", "deny", "'deny' is none of Allow, Deny"),
    ("containerservice:ManagedCluster", "properties.fqdn", "aks.example.com", "it is read-only"),
    (
        *("authorization:RoleAssignment", "principalId", world.DEPLOYER),
        "RoleAssignmentCreateParameters has no such member",
    ),
    ("containerservice:ManagedCluster", "properties.agentPoolProfiles.0.osDiskSizeGB", 4096, "maximum is 2048"),
)
# The like beside the body.
_ELSEWHERE: Final = (
    ("storage:StorageAccount", "apiVersion", "2099-01-01", "the API version: 2099-01-01 is not that of api-version="),
    ("privatedns:PrivateZone", "url", "/privateZones", "the path: /privateZones is not /subscriptions/"),
)


@pytest.mark.parametrize(
    ("of", "path", "value", "problem"),
    [(of, f"body.{at}", value, f"{at.replace('.0.', '[0].')}: {problem}") for of, at, value, problem in _BROKEN]
    + list(_ELSEWHERE),
)
def test_a_request_that_is_broken_is_refused(
    sent: list[Request], check: Check, of: str, path: str, value: Any, problem: str
) -> None:
    whole = next(request for request in sent if request["type"] == f"azure-native:{of}")

    [found] = check([changed(whole, path, value)])

    assert [said for said in found if said.startswith(problem)] == found != []
