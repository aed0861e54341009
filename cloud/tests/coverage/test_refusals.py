"""COVERAGE.md's refusals: each is provoked, and answered in the words of its row."""

from __future__ import annotations

import ast
import html
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import httpx
import pytest

from localcloud.azure.msi.issuer import UnknownIdentityError, issue_credential
from localcloud.azure.shared.faults import NO_DELAYS
from localcloud.testing.arm import GROUP
from tests.coverage.arm_refusals import REFUSALS as ARM
from tests.coverage.blob_refusals import REFUSALS as BLOB
from tests.coverage.cloud import CoverageCloud
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

Provoke: TypeAlias = Callable[[CoverageCloud], httpx.Response]


def _throttled(cloud: CoverageCloud) -> httpx.Response:
    cloud.call("GET", GROUP)
    return cloud.call("GET", GROUP)


def _tenant_throttled(cloud: CoverageCloud) -> httpx.Response:
    path = "/providers/Microsoft.Authorization/roleDefinitions"
    cloud.call("GET", path)
    return cloud.call("GET", path)


def _graph_throttled(cloud: CoverageCloud) -> httpx.Response:
    cloud.graph("GET", "/applications/none")
    return cloud.graph("GET", "/applications/none")


def _vault_throttled(cloud: CoverageCloud) -> httpx.Response:
    cloud.vault("GET", "/secrets/none")
    return cloud.vault("GET", "/secrets/none")


# These want a cloud with a limit.
_LIMITED: Final[Mapping[str, Provoke]] = {
    "more requests than the limit": _throttled,
    "more requests than the tenant's limit": _tenant_throttled,
}
_GRAPH_LIMITED: Final[Mapping[str, Provoke]] = {"more requests than Graph's limit": _graph_throttled}
_VAULT_LIMITED: Final[Mapping[str, Provoke]] = {"more requests than the vault's limit": _vault_throttled}
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


def test_every_error_code_in_the_services_is_in_a_table() -> None:
    tabled = {code for heading, _ in _SERVICES.values() for row in table(heading) for code in codes(row["code"])}
    numbers = {number for _, row in _ROWS for number in re.findall(r"AADSTS(\d+)", row["text"])}
    raised = set(_raised(PACKAGES / "localcloud/azure"))

    # Of every service: no route, no method, a failure of its own, an injected fault.
    everywhere = {"NotFound", "MethodNotAllowed", "InternalServerError", "ServiceUnavailable"}
    assert raised - everywhere - tabled - numbers == set()
    assert len(raised) > 60


def _raised(folder: Path) -> Iterator[str]:
    """The literal codes of refusals: second argument of ServiceError and VaultError, first of EntraError.

    Also of a `partial` of one.
    """
    position = {"ServiceError": 1, "VaultError": 1, "EntraError": 0}
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                made, *arguments = [node.func, *node.args]
                if isinstance(made, ast.Name) and made.id == "partial":
                    made, *arguments = arguments
                if isinstance(made, ast.Name) and made.id in position:
                    code = arguments[position[made.id]]
                    if isinstance(code, ast.Constant):
                        yield str(code.value)


def test_no_credential_is_issued_for_an_identity_that_does_not_exist(tmp_path: Path) -> None:
    cloud = CoverageCloud(tmp_path)
    with pytest.raises(UnknownIdentityError, match=r"^no managed identity /subscriptions/s/nobody$"):
        issue_credential(cloud.cloud, "/subscriptions/s/nobody")
    cloud.store.close()
    assert "`no managed identity <id>`" in FILE.read_text(encoding="utf-8")
