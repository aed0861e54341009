"""The table of symptoms: every row is reached by its own name and words, and no row by another's."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from azure.core.exceptions import ClientAuthenticationError

from identity.aks.sign_in import explained
from identity.settings.stack_file import require_unique_keys
from identity.symptoms import GENERIC_PLACEHOLDERS, Family, Symptom, az_login, find, fix_of_read, symptoms
from localcloud.testing.azure import refusal
from tests.unit import cases

ROWS = pytest.mark.parametrize("row", symptoms(), ids=lambda row: row.name.replace(" ", "-"))
MESSAGES = cases.read(Path(__file__).with_suffix(".yaml"), {})


def named(text: str, *families: Family) -> str | None:
    found = find(text, *families)
    return found.name if found else None


def test_a_name_is_that_of_one_row() -> None:
    require_unique_keys((Path(__file__).parents[3] / "identity/symptoms.yaml").read_text(encoding="utf-8"))
    assert len({symptom.name.lower() for symptom in symptoms()}) == len(symptoms())


@ROWS
def test_every_row_says_all_of_it_with_place_holders_that_have_a_value(row: Symptom) -> None:
    assert row.cause
    assert row.evidence
    for text in (row.fix, row.login):
        assert not re.search(r"[{}]", text.format_map(GENERIC_PLACEHOLDERS))
    assert not row.login or row.family is Family.ENTRA_ID


# What az prints on its standard error, and azure-native quotes of it.
_AGAIN = 'az login --tenant "t-1" --scope "https://management.core.windows.net//.default"'
_REFUSED = f"ERROR: AADSTS70043: The refresh token has expired.\nInteractive ... Please run:\naz logout\n{_AGAIN}\n"


@pytest.mark.parametrize("message", [_REFUSED, json.dumps(_REFUSED), " ".join(_REFUSED.split())])
def test_the_azure_clis_own_way_back_in_is_given_whole(message: str) -> None:
    assert az_login(message) == f"`{_AGAIN}`"
    assert explained(ClientAuthenticationError(message)).endswith(f". sign in again with `{_AGAIN}`")


def test_without_one_it_is_the_plain_command() -> None:
    assert az_login("Please run 'az login' to set up an account", "az login --tenant t") == "`az login --tenant t`"
    assert az_login("Azure CLI not found on path") == "`az login`, which needs the Azure CLI: `az` is not on PATH"


@pytest.mark.parametrize(("message", "fix"), MESSAGES["fix of a read"].items())
def test_a_role_is_the_fix_of_a_read_that_was_refused_alone(message: str, fix: str) -> None:
    assert fix in fix_of_read(message)


@ROWS
def test_a_message_with_the_words_of_a_row_means_that_row(row: Symptom) -> None:
    for words in row.words or (row.name,):
        said = words.replace('[^"]+', "azure-cloud-config")
        assert named(f"before {said}: after", row.family) == row.name


@pytest.mark.parametrize(("text", "name"), MESSAGES["row"].items())
def test_the_most_telling_row_is_taken(text: str, name: str | None) -> None:
    assert named(text) == name


def test_the_refusal_of_a_disabled_secret_is_not_taken_for_a_missing_role() -> None:
    error = refusal("Forbidden disabled secret")
    body = json.dumps({"error": {"code": error.code, "message": str(error), "innererror": {"code": error.inner}}})

    assert named(f"RESPONSE 403: 403 Forbidden\nERROR CODE: Forbidden\n{body}", Family.VAULT) == "SecretDisabled"
