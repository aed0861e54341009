"""`idstack token --exec` as client-go starts it: another process, no terminal, whatever environment there is."""

from __future__ import annotations

import json
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from identity.credentials.certificate import IssuedCertificate
from localcloud.testing.azure import imds_app as imds
from localcloud.testing.hosts import Serve
from tests.unit.identity.aks.world import (
    AKS,
    STRANGER,
    TENANT,
    Command,
    Principal,
    Wire,
    object_id_of,
    principal,
    token_of,
)
from tests.unit.identity.credentials.world import certificate, document

STRAYS = {
    "AZURE_CLIENT_ID": STRANGER,
    "AZURE_TENANT_ID": STRANGER,
    "AZURE_CLIENT_SECRET": "stray",
    "AZURE_FEDERATED_TOKEN_FILE": "/nowhere",
    "AZURE_AUTHORITY_HOST": "https://login.microsoftonline.us/",
    "AZURE_REGIONAL_AUTHORITY_NAME": "westus",
    "AAD_LOGIN_METHOD": "devicecode",
    "AAD_SERVICE_PRINCIPAL_CLIENT_ID": STRANGER,
    "ARM_CLIENT_ID": STRANGER,
    "ARM_TENANT_ID": STRANGER,
    "ARM_CLIENT_SECRET": "stray",
}


def test_a_credential_document_alone_signs_in(started_command: Command, somebody: Principal) -> None:
    answer = json.loads(started_command("--exec", *somebody.arguments).stdout)

    assert (answer["apiVersion"], answer["kind"]) == ("client.authentication.k8s.io/v1", "ExecCredential")
    assert answer["spec"] == {"interactive": False}
    caller = somebody.wire.verified(answer["status"]["token"])
    assert (caller.client_id, caller.object_id) == (somebody.client_id, somebody.object_id)
    asked_again = datetime.fromisoformat(answer["status"]["expirationTimestamp"]) - datetime.now(UTC)
    assert timedelta(minutes=54) < asked_again < timedelta(minutes=86), "five minutes before the token's end"


def test_the_answer_has_the_version_that_the_client_asks_in(command: Command, somebody: Principal) -> None:
    for version in ("v1", "v1beta1"):
        asked = {"apiVersion": f"client.authentication.k8s.io/{version}", "kind": "ExecCredential", "spec": {}}
        done = command("--exec", *somebody.arguments, KUBERNETES_EXEC_INFO=json.dumps(asked))
        assert json.loads(done.stdout)["apiVersion"] == asked["apiVersion"]

    old = command(
        "--exec", *somebody.arguments, KUBERNETES_EXEC_INFO='{"apiVersion": "client.authentication.k8s.io/v1alpha1"}'
    )
    assert (old.returncode, old.stdout) == (1, "")
    assert "offered are client.authentication.k8s.io/v1 and" in old.stderr


def test_stray_variables_make_nobody_else_of_a_certificate(command: Command, somebody: Principal) -> None:
    assert object_id_of(command("--exec", *somebody.arguments, **STRAYS)) == somebody.object_id


def test_the_arm_variables_sign_in_when_they_are_asked_for(
    command: Command, somebody: Principal, issued: IssuedCertificate, tmp_path: Path
) -> None:
    pem = tmp_path / "deployer.pem"
    pem.write_text(issued.private_key_pem + issued.certificate_pem)
    login = ["--login", "arm", "--tenant-id", TENANT, *somebody.authority]
    arm = {"ARM_CLIENT_ID": somebody.client_id, "ARM_TENANT_ID": TENANT, "ARM_CLIENT_CERTIFICATE_PATH": str(pem)}
    strays = {name: value for name, value in STRAYS.items() if not name.startswith("ARM_")}

    assert object_id_of(command("--exec", *login, **strays, **arm)) == somebody.object_id
    pinned = command("--exec", *login, "--client-id", STRANGER, **arm)
    assert f"ARM_CLIENT_ID is {somebody.client_id}, but the login is of {STRANGER}" in pinned.stderr
    elsewhere = command("--exec", *login, **{**arm, "ARM_TENANT_ID": STRANGER})
    assert f"ARM_TENANT_ID is {STRANGER}, but this login is in {TENANT}" in elsewhere.stderr


def test_a_managed_identity_is_the_one_that_was_named(command: Command, entra: Wire, serve_plain: Serve) -> None:
    first, second = (
        entra.azure.directory.create_managed_identity(f"/subscriptions/s/resourcegroups/g/{name}", name)
        for name in ("first", "second")
    )
    for identity in (first, second):
        document = {"id": identity.resource_id, "properties": {"principalId": identity.object_id}}
        entra.azure.store.put("arm", str(identity.resource_id), document)
    attached: dict[str, Any] = {
        "userAssignedIdentities": {str(identity.resource_id): {} for identity in (first, second)}
    }
    scale_set = {"type": "Microsoft.Compute/virtualMachineScaleSets", "identity": attached}
    entra.azure.store.put("arm", "/nodes", scale_set)
    login = [
        "--login",
        "managed-identity",
        "--client-id",
        second.app_id,
        "--imds-endpoint",
        serve_plain(imds(entra.azure)),
    ]

    assert object_id_of(command("--exec", *login, **{**STRAYS, "AZURE_CLIENT_ID": first.app_id})) == second.object_id


def test_the_azure_cli_is_asked_each_time_for_its_tenants_token(command: Command, tmp_path: Path) -> None:
    az = tmp_path / "bin" / "az"
    az.parent.mkdir()
    az.write_text(
        "#!/bin/sh\n"
        f'echo "$@ $AZURE_CONFIG_DIR $AZURE_CLIENT_ID" >> {tmp_path}/asked\n'
        'echo \'{"accessToken": "of-az", "expires_on": 4102444800, "tokenType": "Bearer"}\'\n'
    )
    az.chmod(0o755)
    for _ in range(2):
        done = command(
            *("--exec", "--login", "azure-cli", "--tenant-id", TENANT),
            **{**STRAYS, "PATH": f"{az.parent}:/usr/bin:/bin", "AZURE_CONFIG_DIR": "profile"},
        )
        assert token_of(done) == "of-az"
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 2, "the CLI keeps its tokens itself, and may have signed in as somebody else meanwhile"
    assert f"--tenant {TENANT}" in asked[0]
    assert f"{AKS}" in asked[0]
    assert asked[0].endswith("profile "), "its own directory is kept, the stray client id is not"


def test_a_second_call_takes_the_kept_token(command: Command, somebody: Principal, tmp_path: Path) -> None:
    first, second = (token_of(command("--exec", *somebody.arguments)) for _ in range(2))

    assert (first == second, len(somebody.wire.requests)) == (True, 1)
    directory = tmp_path / "cache/idstack/tokens"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    modes = {stat.S_IMODE(file.stat().st_mode) for file in directory.glob("*.token")}
    assert modes == {0o600}


def test_the_plugin_of_another_program_has_no_other_commands(started_command: Command) -> None:
    done = started_command("--json")

    assert (done.returncode, done.stdout) == (1, "")
    assert "run the others in the checkout of the identity stack" in done.stderr


def test_commands_that_start_together_send_one_request(command: Command, somebody: Principal) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: command("--exec", *somebody.arguments), range(4)))

    assert len({token_of(process) for process in done}) == 1
    assert len(somebody.wire.requests) == 1


def test_two_identities_side_by_side_share_a_cache_and_get_a_token_each(
    command: Command, entra: Wire, issued: IssuedCertificate, tmp_path: Path
) -> None:
    """As two clusters' providers in one program do: one environment, one cache, and an identity for each."""
    pair = [principal(entra, issued, tmp_path / f"{name}.json") for name in ("first", "second")]

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda signer: command("--exec", *signer.arguments, **STRAYS), [*pair, *pair]))

    assert [object_id_of(process) for process in done] == [signer.object_id for signer in [*pair, *pair]]
    assert len(entra.requests) == 2


def test_another_certificate_does_not_find_the_token_of_the_one_before(command: Command, somebody: Principal) -> None:
    assert command("--exec", *somebody.arguments).returncode == 0
    unknown = certificate()
    text = document(unknown, somebody.wire.authority, tenant_id=TENANT, client_id=somebody.client_id)
    somebody.document.write_text(text)

    done = command("--exec", *somebody.arguments)

    assert (done.returncode, done.stdout) == (1, "")
    assert "AADSTS700027" in done.stderr
    assert "register the certificate on the application" in done.stderr
    assert unknown.thumbprint in done.stderr


def test_the_claims_of_a_token_are_printed_without_the_token(command: Command, somebody: Principal) -> None:
    group = somebody.wire.azure.people.create_group("deployers", [somebody.object_id])

    done = command(*somebody.arguments, "--json")

    reported = json.loads(done.stdout)
    assert (reported["oid"], reported["appid"], reported["aud"]) == (somebody.object_id, somebody.client_id, AKS)
    assert reported["groups"] == [group]
    assert not re.search(r"eyJ[\w-]+\.", done.stdout + done.stderr)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--login is missing: one of arm, certificate, secret"),
        (["--login", "secret", "--tenant-id", TENANT], "needs --client-id and --client-secret-file as well"),
        (["--login", "azure-cli", "--client-id", STRANGER], "has no use for --client-id"),
        (["--login", "managed-identity", "--authority-host", "http://entra"], "accepted is an https URL"),
        (["--login", "certificate", "--certificate", "/nowhere"], "/nowhere cannot be read (No such file"),
        (["--login", "github", "--tenant-id", TENANT, "--client-id", STRANGER], "permissions: id-token: write"),
        (["--device-code", "--tenant-id", TENANT], "there is no terminal to ask somebody at"),
    ],
)
def test_an_error_is_one_message_with_the_fix(command: Command, arguments: list[str], message: str) -> None:
    done = command("--exec", *arguments)

    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
