"""`idstack explain`: one entry, a whole message, the list, and a name that is not there."""

from __future__ import annotations

import json

from identity.symptoms import symptoms
from tests.unit.ops.conftest import Idstack


def test_a_code_is_explained_with_evidence_and_fix(idstack: Idstack) -> None:
    printed = idstack("explain", "aadsts7000222")

    assert (printed.code, printed.error) == (0, "")
    assert printed.output.splitlines() == [
        "AADSTS7000222: the certificate or client secret has expired",
        "    evidence  `.venv/bin/idstack status`, column with the end of the certificate",
        "    fix       deliver another certificate: "
        "`.venv/bin/idstack rotate --stack <stack> --identity <cluster>/<identity> --force`",
    ]


def test_a_whole_message_is_explained_by_its_most_telling_part(idstack: Idstack) -> None:
    printed = idstack("explain", 'RESPONSE 403: 403 Forbidden {"innererror":{"code":"SecretDisabled"}}')

    assert printed.output.startswith("SecretDisabled: ")
    assert "RESPONSE 403:" not in printed.output


def test_all_are_listed_without_a_name(idstack: Idstack) -> None:
    printed, found = idstack("explain").output.splitlines(), json.loads(idstack("explain", "--json").output)

    assert all(f"  {symptom.name}: {symptom.cause}" in printed for symptom in symptoms())
    assert [symptom["name"] for symptom in found] == [symptom.name for symptom in symptoms()]


def test_an_unknown_code_is_answered_with_the_nearest(idstack: Idstack) -> None:
    printed = idstack("explain", "AADSTS70027")

    assert (printed.code, printed.output) == (2, "")
    words = " ".join(printed.error.replace("│", " ").split())
    assert (
        "'AADSTS70027' is not in the table; did you mean \"AADSTS700027\"? `.venv/bin/idstack explain` lists all"
        in words
    )
