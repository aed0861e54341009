"""Microsoft's and HashiCorp's libraries for Go, unmodified, by Azure's public names, signed in by their own means."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.harness import LocalStack
from tools import golang
from tools.steps import ROOT

pytestmark = pytest.mark.clients

MODULE: Final = ROOT / "tests/clients/azure-sdk-for-go"
TERRAFORMS: Final = ROOT / "tests/clients/go-azure-sdk"
VAULT, GROUP = "kv-idstack-local", "identity-local"


@pytest.fixture(scope="module")
def printed(stack: LocalStack) -> dict[str, Any]:
    client, subscription = golang.build(MODULE), stack.environment.subscription_id
    done = stack.idstack("local", "exec", "--", str(client), subscription, GROUP, VAULT)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_armmsi_makes_and_lists_identities(printed: dict[str, Any]) -> None:
    assert printed["clientID"]
    assert printed["federated"] == "one"
    assert {"by-go", "hc1-image-registry"} <= set(printed["identities"])


def test_azsecrets_lists_the_stacks_secrets(printed: dict[str, Any], stack: LocalStack) -> None:
    assert {identity["credentialsSecretName"] for identity in stack.control_plane.values()} <= set(printed["secrets"])


def test_azblob_publishes_a_document_with_the_key_of_an_account(printed: dict[str, Any]) -> None:
    assert json.loads(printed["published"])["issuer"] == "https://bygooidc.blob.core.windows.net/bygooidc"


def test_the_library_of_azurerm_makes_and_deletes_what_a_stack_has(stack: LocalStack) -> None:
    client = golang.build(TERRAFORMS)

    made = json.loads(stack.idstack("local", "exec", "--", str(client), "aks-local", "aks-mgmt-local").stdout)

    assert (made["group"], made["federated"]) == ("by-terraform", "one")
    assert made["clientID"]
    assert made["role"].endswith("/4633458b-17de-408a-b874-0445c86b69e6")
    assert made["vault"] == "https://kv-by-terraform.vault.azure.net/"
    assert made["account"] == "https://stbyterraform.blob.core.windows.net/"
    assert made["hasUser"]
