"""A run that takes longer than a token lives."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from tests.harness import running_stack

_SECONDS: Final = 8


def test_tokens_that_end_in_the_middle_of_an_up_do_not_fail_it(tmp_path: Path) -> None:
    with running_stack(tmp_path, token_lifetime=[_SECONDS, _SECONDS]) as stack:
        begun = time.monotonic()
        stack.up()
        assert time.monotonic() - begun > 2 * _SECONDS, "no token ended meanwhile, so this test shows nothing"
        kept = {file.read_text() for file in (stack.state / "tokens").glob("*.token")}
        assert len(kept) == 1, "one login, whose token was renewed in its place"
