"""A run that takes longer than a token lives, and one long after it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from identity.aks.tokens import CACHE_VARIABLE
from tests.harness import LocalStack, running_stack

pytestmark = pytest.mark.nightly
_SECONDS: Final = 8


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """An empty stack in a tenant whose tokens are short-lived."""
    with running_stack(tmp_path_factory.mktemp("long-run"), warm=False, token_lifetime=[_SECONDS, _SECONDS]) as stack:
        yield stack


def test_tokens_that_end_in_the_middle_of_an_up_do_not_fail_it(stack: LocalStack) -> None:
    begun = time.monotonic()
    stack.up()
    assert time.monotonic() - begun > 2 * _SECONDS, "no token ended meanwhile, so this test shows nothing"
    kept = list((stack.state / "run/tokens").glob("*.token"))
    assert len(kept) == 1, "one login, whose token was renewed in its place"


def test_refresh_and_destroy_sign_in_again_on_another_runner(stack: LocalStack, tmp_path: Path) -> None:
    """Neither runs the program: a token that it had put into the kubeconfig would be over by now."""
    shutil.rmtree(stack.state / "run/tokens")
    fresh = {"HOME": str(tmp_path / "home"), CACHE_VARIABLE: str(tmp_path / "tokens")}
    for command in ("refresh", "destroy"):
        stack.pulumi(command, "--yes", "--skip-preview", check=True, **fresh)
    assert len(list((tmp_path / "tokens").glob("*.token"))) == 1
    assert not (stack.state / "run/tokens").exists()
