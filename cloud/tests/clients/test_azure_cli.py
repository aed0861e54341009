"""The Azure CLI, unmodified, on the local cloud: signed in already, it lists and changes what a stack has."""

from __future__ import annotations

import base64
import json
from typing import Any, Protocol

import pytest

from localcloud.core.clouds import LocalEnvironment
from localcloud.testing.certificates import issue
from localcloud.testing.running import execute
from tests.clients import install
from tests.clients.calls import CALLS, GROUP, IDENTITY, VAULT

pytestmark = pytest.mark.clients


class Az(Protocol):
    """Runs `az` as the deployer, or as another identity; returns what it prints as JSON, or why it failed."""

    def __call__(self, *arguments: str, identity: str | None = None, check: bool = True) -> Any: ...


@pytest.fixture
def az(local_cloud: LocalEnvironment, identity: object) -> Az:
    def run(*arguments: str, identity: str | None = None, check: bool = True) -> Any:
        signed_in = [] if identity is None else ["--as", identity]
        command = [*signed_in, "--", "az", *arguments, "--output", "json"]
        done = execute(local_cloud, *command, path=install.azure_cli())
        assert not check or done.returncode == 0, f"az {' '.join(arguments)}: {done.stdout}{done.stderr}"
        if done.returncode:
            return done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    return run


def test_the_cli_is_signed_in_as_the_deployer(az: Az, local_cloud: LocalEnvironment) -> None:
    account = az("account", "show")

    assert (account["id"], account["tenantId"]) == (local_cloud.subscription_id, local_cloud.tenant_id)
    assert account["user"] == {"name": local_cloud.deployer_client_id, "type": "servicePrincipal"}


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("group list", GROUP),
        ("identity list", "hc1-image-registry"),
        ("keyvault list", VAULT),
        ("aks list", "aks-mgmt-local"),
        ("network vnet list", "hc1-vnet"),
        ("acr list", "idstacklocal"),
        ("resource list", VAULT),
        ("account list-locations", "eastus"),
    ],
)
def test_the_cli_lists_what_there_is(az: Az, command: str, name: str) -> None:
    assert name in [resource["name"] for resource in az(*command.split())]


def test_the_cli_reads_a_principal_and_its_roles(az: Az, identity: dict[str, str]) -> None:
    principal = az("ad", "sp", "show", "--id", identity["client_id"])
    roles = az("role", "assignment", "list", "--assignee", identity["client_id"], "--all")

    assert principal["id"] == identity["object_id"]
    assert {role["principalId"] for role in roles} == {principal["id"]}
    assert "Key Vault Crypto User" in [role["roleDefinitionName"] for role in roles]


def test_the_cli_reads_a_secret(az: Az, identity: dict[str, str]) -> None:
    shown = az("keyvault", "secret", "show", "--vault-name", VAULT, "--name", "registry")

    assert json.loads(shown["value"]) == identity


def test_the_cli_makes_and_deletes_an_identity(az: Az) -> None:
    of_it = ("--resource-group", GROUP, "--name", "by-the-cli")
    made = az("identity", "create", *of_it, "--location", "eastus")
    federated = ("--resource-group", GROUP, "--identity-name", "by-the-cli")
    az(
        *("identity", "federated-credential", "create", *federated, "--name", "one"),
        *("--issuer", "https://issuer.example.com/", "--subject", "system:serviceaccount:a:b", "--audiences", "a"),
    )
    listed = az("identity", "federated-credential", "list", *federated)
    az("identity", "federated-credential", "delete", *federated, "--name", "one", "--yes")
    left = az("identity", "federated-credential", "list", *federated)
    az("identity", "delete", *of_it)

    assert made["principalId"]
    assert [item["name"] for item in listed] == ["one"]
    assert left == []
    assert "by-the-cli" not in [identity["name"] for identity in az("identity", "list")]


def test_the_cli_makes_a_principal_with_a_role(az: Az, local_cloud: LocalEnvironment) -> None:
    scope = f"/subscriptions/{local_cloud.subscription_id}/resourceGroups/{GROUP}"

    made = az("ad", "sp", "create-for-rbac", "--name", "by-the-cli", "--role", "Reader", "--scopes", scope)
    roles = az("role", "assignment", "list", "--assignee", made["appId"], "--scope", scope)
    az("role", "assignment", "delete", "--assignee", made["appId"], "--scope", scope)
    az("ad", "app", "delete", "--id", made["appId"])

    assert [role["roleDefinitionName"] for role in roles] == ["Reader"]
    assert az("ad", "app", "list", "--display-name", "by-the-cli") == []


@pytest.mark.parametrize("of", ["app", "sp"])
def test_the_cli_takes_out_what_was_added_to_an_application_or_its_principal(az: Az, of: str) -> None:
    made = az("ad", "sp", "create-for-rbac", "--name", "by-the-cli")
    credential, of_it = ("ad", of, "credential"), ("--id", made["appId"])
    issued = issue("by-the-cli")
    az(*credential, "reset", *of_it, "--append", "--display-name", "added")
    az(*credential, "reset", *of_it, "--append", "--cert", issued.certificate_pem)

    secrets = az(*credential, "list", *of_it)
    for secret in secrets:
        az(*credential, "delete", *of_it, "--key-id", secret["keyId"])
    [certificate] = az(*credential, "list", *of_it, "--cert")
    az(*credential, "delete", *of_it, "--cert", "--key-id", certificate["keyId"])
    left = [*az(*credential, "list", *of_it), *az(*credential, "list", *of_it, "--cert")]
    az("ad", "app", "delete", *of_it)

    assert "added" in [secret["displayName"] for secret in secrets]
    assert base64.b64decode(certificate["customKeyIdentifier"]).hex().upper() == issued.thumbprint
    assert left == []


def test_the_cli_takes_a_federated_credential_out_of_an_application(az: Az) -> None:
    made = az("ad", "app", "create", "--display-name", "by-the-cli")
    federated, of_it = ("ad", "app", "federated-credential"), ("--id", made["appId"])
    audiences = ["api://AzureADTokenExchange"]
    trust = {"name": "added", "issuer": "https://issuer.example", "subject": "s", "audiences": audiences}
    az(*federated, "create", *of_it, "--parameters", json.dumps(trust))

    added = az(*federated, "list", *of_it)
    az(*federated, "delete", *of_it, "--federated-credential-id", "added")
    left = az(*federated, "list", *of_it)
    az("ad", "app", "delete", *of_it)

    assert [credential["name"] for credential in added] == ["added"]
    assert left == []


def test_the_cli_makes_a_principal_whose_certificate_is_in_a_vault(az: Az, local_cloud: LocalEnvironment) -> None:
    """As HyperShift's own scripts make one for each component (contrib/managed-azure)."""
    vault = ("--vault-name", VAULT, "--name", "by-the-cli")
    scope = f"/subscriptions/{local_cloud.subscription_id}/resourceGroups/{GROUP}"
    deployer = ("--assignee", local_cloud.deployer_client_id, "--role", "Key Vault Administrator")
    az("role", "assignment", "create", *deployer, "--scope", scope)
    while "ForbiddenByRbac" in str(az("keyvault", "certificate", "list", "--vault-name", VAULT, check=False)):
        pass  # a new role takes a moment

    kept = ("--create-cert", "--cert", "by-the-cli", "--keyvault", VAULT)
    made = az("ad", "sp", "create-for-rbac", "--name", "by-the-cli", *kept)
    certificate = az("keyvault", "certificate", "show", *vault)
    [registered] = az("ad", "app", "credential", "list", "--id", made["appId"], "--cert")
    az("keyvault", "certificate", "delete", *vault)
    az("keyvault", "certificate", "recover", *vault)
    recovered = az("keyvault", "secret", "show", *vault)
    az("ad", "app", "delete", "--id", made["appId"])
    az("role", "assignment", "delete", *deployer, "--scope", scope)

    assert registered["customKeyIdentifier"] == certificate["x509Thumbprint"]
    assert recovered["contentType"] == "application/x-pkcs12"


@pytest.mark.parametrize("call", CALLS)
def test_an_identity_makes_its_call_by_the_cli(az: Az, call: str) -> None:
    scope, method, url, body = CALLS[call]
    sent = ["--body", body] if body else []

    assert az(
        *("rest", "--method", method.lower(), "--url", url, "--resource", scope.removesuffix("/.default"), *sent),
        identity=IDENTITY,
    )


def test_the_cli_is_refused_what_an_identity_may_not_do(az: Az) -> None:
    refused = az("keyvault", "secret", "list", "--vault-name", VAULT, identity=IDENTITY, check=False)

    assert "ForbiddenByRbac" in refused
