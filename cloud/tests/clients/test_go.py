"""Microsoft's and HashiCorp's libraries for Go, unmodified, by Azure's public names, signed in by their own means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from localcloud.core.clouds import LocalEnvironment
from tests.clients import install
from tests.clients.calls import GROUP, VAULT, printed

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("identity")]

MODULE: Final = Path(__file__).with_name("azure-sdk-for-go")
TERRAFORMS: Final = Path(__file__).with_name("go-azure-sdk")


def test_the_clients_of_identities_secrets_and_blobs_list_and_write(local_cloud: LocalEnvironment) -> None:
    command = (str(install.go(MODULE)), local_cloud.subscription_id, GROUP, VAULT)
    made = json.loads(printed(local_cloud, *command))

    assert made["clientID"]
    assert made["federated"] == "one"
    assert {"by-go", "hc1-image-registry"} <= set(made["identities"])
    assert "registry" in made["secrets"]
    assert json.loads(made["published"])["issuer"] == "https://bygooidc.blob.core.windows.net/bygooidc"


def test_the_library_of_azurerm_makes_reads_and_deletes(local_cloud: LocalEnvironment) -> None:
    made = json.loads(printed(local_cloud, str(install.go(TERRAFORMS)), "aks-local", "aks-mgmt-local"))

    assert (made["group"], made["federated"]) == ("by-terraform", "one")
    assert made["clientID"]
    assert made["role"].endswith("/4633458b-17de-408a-b874-0445c86b69e6")
    assert made["vault"] == "https://kv-by-terraform.vault.azure.net/"
    assert made["account"] == "https://stbyterraform.blob.core.windows.net/"
    assert made["hasUser"]
