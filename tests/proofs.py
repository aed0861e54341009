"""An identity's proof call, as an official client makes it: at Azure's own addresses."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from identity.catalogue import CONTROL_PLANE
from identity.clouds import CLOUDS, DEFAULT_CLOUD
from tests.harness import LocalStack


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
