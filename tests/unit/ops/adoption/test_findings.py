"""The table of `idstack import scripts`."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from identity import resource_types
from ops.adoption.matching import Finding, Match, findings, table
from tests.unit.ops.adoption.scripted import EXISTING, MANAGED_ROW, NAMED, ROW, with_vault


def of(type_token: str, id: str | None, owner: str = "", **inputs: Any) -> Match:
    urn = f"urn:pulumi:dev::idstack::{type_token}::x"
    return Match({"urn": urn, "type": type_token, "custom": True, "inputs": inputs}, owner, id)


def line(identity: str, *matches: Match) -> Finding:
    [found] = [finding for finding in findings(NAMED, EXISTING, matches) if finding.identity == identity]
    return found


def test_a_vault_that_trusts_services_is_shown_as_different() -> None:
    vault = of(resource_types.VAULT, "/vault")
    strict = with_vault(networkAcls={"bypass": "None"})

    assert line("key vault", vault).next_up == "adopts it and admits no trusted services"
    [found] = [finding for finding in findings(NAMED, strict, [vault]) if finding.identity == "key vault"]
    assert (found.differs, found.next_up) == ("", "adopts it")


@pytest.mark.parametrize(
    ("id", "found", "next_up"),
    [(None, "0 of 1 role", "assigns it; a wider role stays"), ("/role", "1 of 1 role", "adopts it")],
)
def test_the_key_vault_users_role_is_on_the_vault_itself(id: str | None, found: str, next_up: str) -> None:
    shown = line("key-vault-user", of(resource_types.ROLE_ASSIGNMENT, id))

    assert (shown.found, shown.next_up) == (found, next_up)


def test_a_missing_principal_and_a_missing_role_are_made() -> None:
    shown = line(
        ROW.field,
        of(resource_types.SERVICE_PRINCIPAL, None, ROW.field),
        of(resource_types.ROLE_ASSIGNMENT, "/role", ROW.field),
        of(resource_types.ROLE_ASSIGNMENT, None, ROW.field),
    )

    assert shown.found.endswith("1 of 2 roles")
    assert shown.differs == "PKCS#12; no service principal"
    assert shown.next_up == "adopts it; creates one; assigns the missing roles"


def test_service_accounts_without_a_credential_get_one() -> None:
    field = MANAGED_ROW.field
    shown = line(
        field,
        of(resource_types.MANAGED_IDENTITY, "/id", field),
        of(resource_types.FEDERATED_CREDENTIAL, "/fed", field),
        of(resource_types.FEDERATED_CREDENTIAL, None, field),
    )

    assert shown.found == "registry-MI-p, 1 of 2 federated credentials"
    assert shown.differs == "service accounts without a federated credential"
    assert shown.next_up == "adopts it; creates the missing ones"


@pytest.mark.parametrize("width", [80, 200])
def test_no_word_of_the_table_is_lost_on_any_screen(width: int) -> None:
    lines = findings(
        NAMED,
        EXISTING,
        [
            of(resource_types.VAULT, "/vault"),
            of(resource_types.ROLE_ASSIGNMENT, None),
            of(resource_types.ROLE_ASSIGNMENT, None, ROW.field),
        ],
    )
    screen = StringIO()

    Console(file=screen, width=width).print(table(lines, width))

    printed = screen.getvalue().split()
    for finding in lines:
        assert {
            *finding.identity.split(),
            *finding.found.split(),
            *finding.differs.split(),
            *finding.next_up.split(),
        } <= {*printed}
