"""The policies as the real engine runs them: what breaks one is refused before it is made, a waiver is seen."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from tests.engine.changing import refusal
from tests.harness import LocalStack

_PACK: Final = ("--policy-pack", "policies")
_PREVIEW: Final = ("preview", *_PACK)
# Production's strictness, of which the local stack's vault keeps nothing.
_STRICT: Final[dict[str, Any]] = {"protect": "true", "probe": {"image": f"idstack/credential-probe@sha256:{'0' * 64}"}}
_MESSAGE: Final = re.compile(r"policy: ([a-z-]+), resource: ([^,\s]+), reason")
_VAULT: Final = {("vault-purge-protection", "vault-vault"), ("network-open-to-all", "vault-vault")}
_REASON: Final = "the tests' own stack, which nobody keeps anything in"
_WAIVERS: Final = [{"policy": policy, "resource": name, "reason": _REASON} for policy, name in sorted(_VAULT)]


def broken(printed: str) -> set[tuple[str, str]]:
    """Policies with the resources that break them; the engine stops soon after the first."""
    return set(_MESSAGE.findall(printed))


def test_what_breaks_a_policy_is_never_made(small: LocalStack) -> None:
    assert broken(refusal(small, "up", "--yes", "--skip-preview", *_PACK, **_STRICT)) == _VAULT


@pytest.mark.slow
def test_a_waiver_lets_pass_in_sight_and_nothing_else(small: LocalStack) -> None:
    assert broken(refusal(small, *_PREVIEW, **_STRICT)) == _VAULT
    with small.configured(**_STRICT, policyWaivers=_WAIVERS):
        passed = small.pulumi(*_PREVIEW)
    assert (passed.stdout + passed.stderr).count(f"waived by `policyWaivers` of the stack's file: {_REASON}") >= 2
    by_tag = refusal(small, *_PREVIEW, protect="true", policyWaivers=_WAIVERS)
    assert {policy for policy, _ in broken(by_tag)} == {"image-by-tag"}


@pytest.mark.slow
def test_a_stack_that_keeps_every_policy_is_as_it_was(small: LocalStack) -> None:
    done = small.pulumi(*_PREVIEW)
    assert "idstack@v" in done.stdout
    assert "advisory" not in done.stdout + done.stderr
    assert "mandatory" not in done.stdout + done.stderr
