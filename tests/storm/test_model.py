"""What the model finds in what a command printed."""

from __future__ import annotations

import base64

import pytest

from tests.storm.model import BrokenError, require_a_cause, require_a_way_out
from tests.storm.world import Done

_KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ=="


@pytest.mark.parametrize(
    ("code", "printed", "broken"),
    [
        (1, "Traceback (most recent call last):\n  File ...", "a trace was printed"),
        (0, "Traceback (most recent call last):\n  File ...", "a trace was printed"),
        (1, "error: update failed", "the error names no cause"),
        (0, f"certificate: {_KEY}", "a private key was printed"),
        *(
            (0, base64.b64encode(f"{' ' * shift}{_KEY}".encode()).decode(), "a private key was printed")
            for shift in range(3)
        ),
    ],
)
def test_what_a_command_must_not_print_is_found(code: int, printed: str, broken: str) -> None:
    with pytest.raises(BrokenError, match=broken):
        require_a_cause(Done(("up",), code, printed))


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        (0, "Resources:\n    196 unchanged"),
        (1, "error: `pulumi up` was killed by signal 9. `.venv/bin/idstack recover --stack local` unlocks the stack"),
        (0, "-----BEGIN CERTIFICATE-----"),
        (0, base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()),
    ],
)
def test_a_command_may_fail_if_it_says_why(code: int, printed: str) -> None:
    require_a_cause(Done(("up",), code, printed))


@pytest.mark.parametrize(
    "printed", ["`.venv/bin/idstack rotate --force` gets out", "`az keyvault secret set-attributes --id ...`"]
)
def test_what_was_tampered_with_may_be_refused_if_the_way_out_is_named(printed: str) -> None:
    require_a_way_out(Done(("renew",), 1, printed))
    require_a_way_out(Done(("renew",), 0, ""))
    with pytest.raises(BrokenError, match="it names no way out"):
        require_a_way_out(Done(("renew",), 1, "it is too soon"))
