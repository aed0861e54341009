"""`make` alone: what a stack needs comes first, what the project needs after it."""

from __future__ import annotations

import re
import subprocess

from tests.architecture.source import ROOT


def test_the_targets_of_a_stack_are_listed_first_and_every_target_once() -> None:
    printed = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    users, _, projects = printed.partition("For work on the project itself:")
    first, rest = (re.findall(r"^  make (\S+)", part, re.MULTILINE) for part in (users, projects))

    assert first == ["help", "setup", "up", "preview", "renew", "recover", "down", "pin"]
    described = re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted([*first, *rest]) == sorted(described)
