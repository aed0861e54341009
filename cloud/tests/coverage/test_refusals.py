"""COVERAGE.md's refusals: each is provoked, and answered in the words of its row."""

from __future__ import annotations

import ast
import html
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from string import Formatter
from typing import Any, Final

import httpx
import pytest

from localcloud.azure.msi.issuer import UnknownIdentityError, issue_credential
from localcloud.azure.shared.faults import NO_DELAYS
from localcloud.azure.shared.refusals import rows
from localcloud.testing.arm import GROUP
from tests.coverage.arm_refusals import REFUSALS as ARM
from tests.coverage.blob_refusals import REFUSALS as BLOB
from tests.coverage.cloud import CoverageCloud, Provoke, call
from tests.coverage.refusals import ENTRA, GRAPH, IMDS, KEY_VAULT
from tests.coverage.strict_refusals import (
    STRICT_ARM,
    STRICT_BLOB,
    STRICT_ENTRA,
    STRICT_GRAPH,
    STRICT_IMDS,
    STRICT_KEY_VAULT,
)
from tests.coverage.tables import FILE, Row, codes, matches, table
from tests.public_host import PublicHost, running_public_host
from tests.source import PACKAGES


def _twice(provoke: Provoke) -> Provoke:
    return lambda cloud: [provoke(cloud) for _ in range(2)][-1]


# These want a cloud with a limit.
_LIMITED: Final[Mapping[str, Provoke]] = {
    "more requests than the limit": _twice(call("GET", GROUP)),
    "more requests than the tenant's limit": _twice(call("GET", "/providers/Microsoft.Authorization/roleDefinitions")),
}
_GRAPH_LIMITED: Final[Mapping[str, Provoke]] = {
    "more requests than Graph's limit": _twice(lambda cloud: cloud.graph("GET", "/applications/none"))
}
_VAULT_LIMITED: Final[Mapping[str, Provoke]] = {
    "more requests than the vault's limit": _twice(lambda cloud: cloud.vault("GET", "/secrets/none"))
}
_LIMITS: Final[Mapping[str, Any]] = {
    **{case: {"arm_requests": {"read": (1, 0.1)}} for case in _LIMITED},
    **{case: {"graph_requests": {"unit": (1, 0.1)}} for case in _GRAPH_LIMITED},
    **{case: {"vault_requests": {"other": (1, 0.1)}} for case in _VAULT_LIMITED},
}
# Seconds within which a second request arrives through the proxy while the first is at work.
_LONG_WRITE: Final = 2.0
_SERVICES: Final[Mapping[str, tuple[str, Mapping[str, Provoke]]]] = {
    "arm": ("### Refusals of Azure Resource Manager", {**ARM, **STRICT_ARM, **_LIMITED}),
    "entra": ("### Refusals of Entra ID", {**ENTRA, **STRICT_ENTRA}),
    "graph": ("### Refusals of Microsoft Graph", {**GRAPH, **STRICT_GRAPH, **_GRAPH_LIMITED}),
    "keyvault": ("### Refusals of the Key Vault data plane", {**KEY_VAULT, **STRICT_KEY_VAULT, **_VAULT_LIMITED}),
    "blob": ("### Refusals of the Blob Storage data plane", {**BLOB, **STRICT_BLOB}),
    "imds": ("### Refusals of IMDS", {**IMDS, **STRICT_IMDS}),
}
_ROWS: Final = [(service, row) for service, (heading, _) in _SERVICES.items() for row in table(heading)]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PublicHost]:
    with running_public_host(tmp_path_factory.mktemp("public")) as host:
        yield host


@pytest.fixture(params=["in process", pytest.param("by name", marks=pytest.mark.slow)])
def cloud(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[CoverageCloud]:
    """A cloud without delays, one that takes a single read where the case is about limits.

    It is asked in this process, or by Azure's public names through the proxy.
    """
    case, is_by_name = request.node.callspec.params["row"]["case"], request.param == "by name"
    faults = replace(NO_DELAYS, **_LIMITS.get(case, {}))
    if is_by_name and case == "two credentials at once":
        faults = replace(faults, federated_credential_write=_LONG_WRITE)
    built = CoverageCloud(tmp_path, faults)
    if is_by_name:
        host: PublicHost = request.getfixturevalue("running")
        host.apps.update(built.services())
        trusted = ssl.create_default_context(cafile=host.ca_file)
        by_name = partial(httpx.AsyncHTTPTransport, proxy=host.proxy, verify=trusted)
        monkeypatch.setattr("httpx.ASGITransport", lambda _: by_name())
    yield built
    built.store.close()


@pytest.mark.parametrize(("service", "row"), _ROWS, ids=[f"{service}: {row['case']}" for service, row in _ROWS])
def test_a_refusal_is_the_one_of_its_row(service: str, row: Row, cloud: CoverageCloud) -> None:
    answer = _SERVICES[service][1][row["case"]](cloud)

    if service == "blob":
        [(name, message)] = re.findall(r"<Code>(.*)</Code><Message>(.*)</Message>", answer.text, re.DOTALL)
        assert (answer.status_code, [name]) == (int(row["status"]), codes(row["code"]))
        assert answer.headers["x-ms-error-code"] == name
        assert matches(row["text"], html.unescape(message))
        return
    error = answer.json()["error"]
    found, text = ([error], answer.json()["error_description"]) if isinstance(error, str) else _parts(error)
    assert (answer.status_code, found) == (int(row["status"]), codes(row["code"]))
    assert matches(row["text"], text), text


def _parts(error: dict[str, object]) -> tuple[list[str], str]:
    inner = error.get("innererror") or {}
    assert isinstance(inner, dict)
    return [str(error["code"]), *map(str, inner.values())], str(error["message"])


@pytest.mark.parametrize("service", _SERVICES)
def test_every_case_is_provoked_and_every_provocation_is_a_case(service: str) -> None:
    heading, provoked = _SERVICES[service]
    assert [row["case"] for row in table(heading)] == list(dict.fromkeys(row["case"] for row in table(heading)))
    assert {row["case"] for row in table(heading)} == set(provoked)


def test_every_row_of_the_refusals_has_its_codes_in_a_table() -> None:
    tabled = {code for _, row in _ROWS for code in codes(row["code"] + row["source"])}
    numbers = {number for _, row in _ROWS for number in re.findall(r"AADSTS(\d+)", row["text"])}
    written = {code for case, row in rows().items() for code in (case.split()[0], *str(*row).split()[1:])}

    # Of every service: a failure of its own.
    assert written - {"InternalServerError"} - tabled - numbers == set()


def test_every_row_is_raised_with_the_words_for_its_braces() -> None:
    parsed = {case: [*Formatter().parse(*row.values())] for case, row in rows().items()}
    braces = {case: {name.partition(".")[0] for _, name, *_ in parts if name} for case, parts in parsed.items()}
    # One call raises these, by the kind of the item.
    for kind in ("Secret", "Key", "Certificate"):
        assert braces.pop(f"{kind}NotFound") == {"kind", "name"}
    raised = list(_raised(PACKAGES / "localcloud/azure"))
    assert [(case, words) for case, words in raised if words != braces.get(case)] == []
    assert {case for case, _ in raised} == braces.keys()


def _raised(folder: Path) -> Iterator[tuple[str, set[str]]]:
    """The case of each call of `refusal` with its words; `**words` are those of a dictionary in its function."""
    for file in folder.rglob("*.py"):
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            words: set[str] = set()
            for node in sorted(ast.walk(function), key=lambda node: getattr(node, "lineno", 0)):
                match node:
                    case ast.Assign([ast.Name("words")], ast.Dict(keys)):
                        words = {str(key.value) for key in keys if isinstance(key, ast.Constant)}
                    case ast.Call(ast.Name("refusal"), [ast.Constant(str(case)), *_], keywords):
                        yield case, {word for given in keywords for word in ([given.arg] if given.arg else words)}


def test_no_credential_is_issued_for_an_identity_that_does_not_exist(tmp_path: Path) -> None:
    cloud = CoverageCloud(tmp_path)
    with pytest.raises(UnknownIdentityError, match=r"^no managed identity /subscriptions/s/nobody$"):
        issue_credential(cloud.cloud, "/subscriptions/s/nobody")
    cloud.store.close()
    assert "`no managed identity <id>`" in FILE.read_text(encoding="utf-8")
