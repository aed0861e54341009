"""What there is of a stack is read in one package of the commands, and each kind of document is parsed once."""

from __future__ import annotations

from typing import Final

import pytest

from tests.architecture.source import ROOT, constants, files, imports, place

# Packages that take what `ops/world` has read, or ask no cloud at all.
JUDGES: Final = ("doctor", "graph", "fleet", "rehearsal")
# Packages that also look something up or change it: by the client of ARM and Graph that they are given.
WORKERS: Final = ("sweep", "recovery", "adoption")
CLIENTS: Final = ("identity.azure.client", "identity.aks.api_server", "ops.access")
# Keys of the documents that Azure answers, with the one module that takes them apart.
PARSERS: Final = {
    "secretUriWithVersion": "identity/azure/records.py",
    "principalType": "identity/azure/records.py",
    "keyCredentials": "identity/azure/registered_certificates.py",
    "customKeyIdentifier": "identity/azure/registered_certificates.py",
}


def test_the_packages_are_still_called_that() -> None:
    assert all((ROOT / "ops" / package).is_dir() for package in ("world", *JUDGES, *WORKERS))


@pytest.mark.parametrize(
    ("package", "clients"),
    [*((package, CLIENTS) for package in JUDGES), *((package, ("identity.aks.api_server",)) for package in WORKERS)],
)
def test_azure_and_the_cluster_are_read_by_the_world_alone(package: str, clients: tuple[str, ...]) -> None:
    assert not [
        f"{place(file, line)} imports {module}"
        for file in files(f"ops/{package}")
        for line, module in imports(file)
        if module.startswith(clients)
    ]


def test_each_kind_of_document_has_one_parser() -> None:
    parsers = {key: ROOT / module for key, module in PARSERS.items()}
    found = constants(("identity", "components", "provider", "ops"))
    assert not [place(file, node.lineno) for file, node in found if parsers.get(str(node.value), file) != file]
