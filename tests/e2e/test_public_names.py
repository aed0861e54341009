"""Official SDKs, unmodified, sign in as each identity and make its proof call by Azure's public names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import jwt
import pytest
import requests

from identity.catalogue import CONTROL_PLANE
from identity.clouds import CLOUDS, DEFAULT_CLOUD
from tests.harness import LocalStack
from tools import golang
from tools.steps import ROOT

# As the documentation of azure-identity has it.
PYTHON: Final = """
import sys
import requests
from azure.identity import EnvironmentCredential

scope, method, url, *body = sys.argv[1:]
with EnvironmentCredential() as credential:
    headers = {"Authorization": f"Bearer {credential.get_token(scope).token}", "Content-Type": "application/json"}
print(requests.request(method, url, data="".join(body), headers=headers).status_code)
"""
FIELDS: Final = [row.field for row in CONTROL_PLANE if row.enabled_by_default]
_FIRST: Final = ("disk", "kms")


def proof(stack: LocalStack, field: str) -> tuple[str, str, str, str]:
    """Scope, method, URL and body ("" for none) of the call that the identity's probe makes."""
    [row] = [identity for identity in CONTROL_PLANE if identity.field == field]
    name = row.probe_name(row.mounts[0])
    [probe] = [
        resource["inputs"]["spec"]["template"]["spec"]["containers"][0]
        for resource in stack.resources()
        if resource["type"] == "kubernetes:apps/v1:Deployment" and resource["inputs"]["metadata"]["name"] == name
    ]
    arguments: list[str] = probe["args"]
    call: dict[str, Any] = json.loads(arguments[arguments.index("--proof") + 1])
    host = call.get("headers", {}).get("Host") or urlsplit(CLOUDS[DEFAULT_CLOUD].arm_endpoint).netloc
    url = urlsplit(call["url"])._replace(netloc=host).geturl()
    return call["scope"], call["method"], url, json.dumps(call["body"]) if "body" in call else ""


def signed_in(stack: LocalStack, field: str, *command: str) -> str:
    """What a command prints that runs with the identity's sign-in."""
    return stack.idstack("local", "exec", "--as", f"hc1/{field}", "--", *command).stdout.strip()


@pytest.mark.parametrize(
    "field", [field if field in _FIRST else pytest.param(field, marks=pytest.mark.nightly) for field in FIELDS]
)
def test_azure_identity_makes_the_proof_call(stack: LocalStack, field: str) -> None:
    assert signed_in(stack, field, sys.executable, "-c", PYTHON, *proof(stack, field)) == "200"


@pytest.mark.parametrize("field", _FIRST)
def test_azidentity_of_go_makes_the_proof_call(stack: LocalStack, field: str) -> None:
    client = golang.build(Path(ROOT, "tests/e2e/azidentity"))

    assert signed_in(stack, field, str(client), *proof(stack, field)) == "200"


def test_what_an_identity_may_not_do_is_refused_by_name(stack: LocalStack) -> None:
    disk = signed_in(stack, "disk", sys.executable, "-c", PYTHON, *proof(stack, "kms"))

    assert disk == "403", "the key that encrypts etcd is none of the disk driver's business"


def test_a_person_signs_in_with_a_device_code_by_kubelogin(stack: LocalStack, tmp_path: Path) -> None:
    of_aks = ("--server-id", "6dae42f8-4368-4678-94ff-3960e28e3630", "--tenant-id", stack.environment.tenant_id)
    client = ("--client-id", "80faf920-1908-4b52-b5ef-a8e7bedfc67a", "--cache-dir", str(tmp_path))
    command = (
        *(str(Path(stack.variables["VIRTUAL_ENV"], "bin/idstack")), "local", "exec", "--"),
        *(str(golang.kubelogin()), "get-token", "--login", "devicecode", *of_aks, *client),
    )

    with stack.started(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asking:
        assert asking.stderr is not None
        code = next(found[1] for line in asking.stderr if (found := re.search(r"enter the code (\w+)", line)))
        form = {"otc": code, "login": "developer@idstack.local", "action": "approve"}
        page = f"{stack.environment.authority_host}common/oauth2/deviceauth"
        requests.post(page, data=form, timeout=60).raise_for_status()
        token = json.loads(asking.communicate()[0])["status"]["token"]

    assert jwt.decode(token, options={"verify_signature": False})["upn"] == "developer@idstack.local"
