"""Which official client was seen to use which operation of the local cloud: `CLIENTS.md`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from localcloud.azure.arm.path import parse
from localcloud.core.request_log import LoggedRequest
from tests.coverage.tables import code, table
from tests.source import PACKAGES

FILE: Final = PACKAGES / "CLIENTS.md"
Operations = Mapping[tuple[str, str], frozenset[str]]
"""Clients by (service, operation)."""

_TITLE: Final = """# Which client uses what
Official clients, unmodified, that were seen to use an operation of the local cloud and got what they asked for.
`pytest -m clients tests/clients` compares this page with what it sees, and writes it again with `UPDATE_GOLDEN=1`.
`COVERAGE.md` has the clients' versions, and every operation.
"""
_SERVICES: Final = {
    "arm": "Azure Resource Manager",
    "entra": "Entra ID",
    "graph": "Microsoft Graph",
    "keyvault": "Key Vault data plane",
    "blob": "Blob Storage data plane",
}
# In this order, as a request may name several. Requests of plain HTTP libraries say nothing about a client of Azure.
_PRODUCTS: Final = (
    (re.compile(r"AZURECLI/"), "Azure CLI"),
    (re.compile(r"azsdk-go-([\w-]+)/"), r"\1 (Go)"),
    (re.compile(r"^HashiCorp/go-azure-sdk "), "go-azure-sdk (Go)"),
    (re.compile(r"azsdk-js-([\w-]+)/"), r"@azure/\1 (JavaScript)"),
    (re.compile(r"core-rest-pipeline/"), "@azure/core-rest-pipeline (JavaScript)"),
    (re.compile(r"azsdk-python-(?:azure-)?([\w-]+)/"), r"azure-\1 (Python)"),
    (re.compile(r"MSAL\.Python"), "msal (Python)"),
)
_BRACES: Final = re.compile(r"\{[^}]+\}")


def client(user_agent: str) -> str | None:
    """The official client that has this `User-Agent`; None for any other."""
    for pattern, name in _PRODUCTS:
        if found := pattern.search(user_agent):
            return found.expand(name)
    return None


def operation(request: LoggedRequest) -> str | None:
    """The operation of a request, as the tables of COVERAGE.md name it; None if they do not name it."""
    if request.service == "arm":
        return _arm_operation(request)
    for row in table(f"### {_SERVICES[request.service]}"):
        if request.method in row["methods"].split(", ") and _is_of(code(row["path"]), request.path):
            return f"{request.method} {code(row['path'])}"
    return None


def collected(requests: Iterable[LoggedRequest]) -> Operations:
    """What official clients were seen to use; refused requests do not count."""
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for request in requests:
        if request.status < 400 and request.service in _SERVICES and (name := client(request.client)):
            used = operation(request)
            if used is not None:
                found[request.service, used].add(name)
    return {key: frozenset(names) for key, names in found.items()}


def page(operations: Operations) -> str:
    """The Markdown page."""
    sections = [_TITLE]
    for service, heading in _SERVICES.items():
        rows = sorted((used, sorted(names)) for (of, used), names in operations.items() if of == service)
        lines = [f"| `{used}` | {', '.join(names)} |\n" for used, names in rows]
        sections.append(f"## {heading}\n| operation | seen |\n|---|---|\n{''.join(lines)}")
    return "\n".join(sections)


def _arm_operation(request: LoggedRequest) -> str:
    if request.path == "/metadata/endpoints":
        return "GET /metadata/endpoints"
    path = parse(request.path, request.method)
    [name] = [
        code(row["type"])
        for row in table("### Azure Resource Manager")
        if code(row["type"]).lower() == path.type.lower()
    ]
    method = "list" if request.method == "GET" and path.is_collection else request.method
    return f"{method} {name}" if path.verb is None else f"{method} {name}/{path.verb}"


def _is_of(template: str, path: str) -> bool:
    parts = [re.escape(part) for part in _BRACES.split(template)]
    names = ["[^/]*" if ":path" not in placeholder else ".*" for placeholder in _BRACES.findall(template)]
    pattern = "".join(a + b for a, b in zip(parts, [*names, ""], strict=True))
    return re.fullmatch(pattern.replace("<collection>", "(applications|servicePrincipals)"), path) is not None
