"""What is sent to Azure, against the models of Microsoft's libraries: every type, every shape of the configuration."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
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

pytestmark = pytest.mark.clients

_CHECK: Final = ROOT / "tests/clients/request_bodies.py"
_SECRET: Final = "azure-native:keyvault:Secret"
_CLUSTER: Final = "azure-native:containerservice:ManagedCluster"
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
    secret = {
        "resourceGroupName": "identity-dev",
        "vaultName": "kv-idstack-dev",
        "secretName": "one",
        "properties": {"value": "document", "contentType": "text/plain", "attributes": {"notBefore": 1, "expires": 9}},
    }
    return [*sent_bodies(partial(run_program, folder)), *requests(AZURE_NATIVE[_SECRET], secret)]


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


@dataclass(frozen=True)
class _BrokenRequest:
    """A request of a type with a change at a path of it, and the problem that the change makes."""

    name: str
    type: str
    path: str
    value: Any
    problem: str


_BROKEN: Final = (
    _BrokenRequest(
        "an-unknown-member",
        "azure-native:keyvault:Vault",
        "body.properties.enableRbacAuthorisation",
        True,
        "properties.enableRbacAuthorisation: VaultProperties has no such member",
    ),
    _BrokenRequest(
        "a-number-as-a-string",
        "azure-native:keyvault:Vault",
        "body.properties.softDeleteRetentionInDays",
        "90",
        "properties.softDeleteRetentionInDays: str instead of int",
    ),
    _BrokenRequest(
        "a-string-instead-of-an-array",
        "azure-native:managedidentity:FederatedIdentityCredential",
        "body.properties.audiences",
        "openshift",
        "properties.audiences: str instead of an array",
    ),
    _BrokenRequest(
        "a-required-member-left-out",
        "azure-native:keyvault:Vault",
        "body.properties.tenantId",
        ABSENT,
        "properties.tenantId: it is required",
    ),
    _BrokenRequest(
        "a-word-of-no-enum",
        "azure-native:keyvault:Vault",
        "body.properties.networkAcls.defaultAction",
        "deny",
        "properties.networkAcls.defaultAction: 'deny' is none of Allow, Deny",
    ),
    _BrokenRequest(
        "a-read-only-member",
        _CLUSTER,
        "body.properties.fqdn",
        "aks.example.com",
        "properties.fqdn: it is read-only",
    ),
    _BrokenRequest(
        "a-member-beside-the-properties",
        "azure-native:authorization:RoleAssignment",
        "body.principalId",
        world.DEPLOYER,
        "principalId: RoleAssignmentCreateParameters has no such member",
    ),
    _BrokenRequest(
        "a-number-beyond-its-bound",
        _CLUSTER,
        "body.properties.agentPoolProfiles.0.osDiskSizeGB",
        4096,
        "properties.agentPoolProfiles[0].osDiskSizeGB: maximum is 2048",
    ),
    _BrokenRequest(
        "another-api-version",
        "azure-native:storage:StorageAccount",
        "apiVersion",
        "2099-01-01",
        "the API version: 2099-01-01 is not that of api-version=2024-01-01",
    ),
    _BrokenRequest(
        "another-path",
        "azure-native:privatedns:PrivateZone",
        "url",
        "/privateZones",
        "the path: /privateZones is not /subscriptions/",
    ),
)


@pytest.mark.parametrize("broken", _BROKEN, ids=lambda broken: broken.name)
def test_a_request_that_is_broken_is_refused(sent: list[Request], check: Check, broken: _BrokenRequest) -> None:
    whole = next(request for request in sent if request["type"] == broken.type)

    [found] = check([changed(whole, broken.path, broken.value)])

    assert [problem for problem in found if problem.startswith(broken.problem)] == found != []
