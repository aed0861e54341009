"""What an answer is refused for: the option, what was typed, what is accepted."""

from __future__ import annotations

import pytest

from ops.first_stack.template import answered
from ops.stack.errors import CommandError


def test_a_side_that_nobody_has_is_refused_with_both_sides() -> None:
    with pytest.raises(CommandError) as refused:
        answered({"side": "both"}, (), None)

    told = '--side: found "both"; accepted: hypershift, its operators; or stack, this stack'
    assert told in [line.strip() for line in refused.value.format_message().splitlines()]
