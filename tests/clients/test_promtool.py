"""Prometheus' own promtool: it accepts the rules, and they fire when their tests say so."""

from __future__ import annotations

from typing import Final

import pytest

from tools import golang
from tools.steps import ROOT, run

pytestmark = pytest.mark.clients

RULES: Final = ROOT / "monitoring"


@pytest.mark.parametrize(
    "arguments",
    [("check", "rules", RULES / "rules.yaml"), ("test", "rules", RULES / "rules.test.yaml")],
    ids=["check", "test"],
)
def test_promtool_accepts_the_rules(arguments: tuple[str, ...]) -> None:
    """`run` raises with what promtool has printed."""
    run([golang.command(), "-C", ROOT / "tools/promtool", "tool", "promtool", *arguments])
