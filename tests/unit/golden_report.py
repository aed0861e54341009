"""The reviewed report of every message about the configuration, `identity/settings/golden/report.txt`, by rule.

Tests assert the place and the rule of a problem; that its message is the reviewed one is asserted here for all of them.
Messages that differ by key and value alone are one. `make golden` writes the file again from what the tests that use it
meet: read its diff as a user would.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from identity.settings import Problem
from identity.settings.schema.problems import path_of

GOLDEN: Final = Path(__file__).parent / "identity/settings/golden/report.txt"
IS_REWRITING: Final = os.environ.get("UPDATE_GOLDEN") == "1"
_VARYING: Final = (
    (re.compile(r'/[^\s"]*pytest-of-[^\s"]*/'), "<directory>/"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)"), "<date>"),
    (re.compile(r"\b[0-9A-F]{40}\b"), "<thumbprint>"),
    (re.compile(r'^(  found:    )("([^"\\]|\\.)*"|the number \S+)(?=$|[,:])', re.MULTILINE), r"\1<value>"),
)
_HEADING: Final = re.compile(r"^## (?P<rule>[a-z0-9-]+)\n", re.MULTILINE)


def read() -> dict[str, set[str]]:
    """The reviewed messages by rule."""
    _, *parts = _HEADING.split(GOLDEN.read_text(encoding="utf-8"))
    return {
        rule: {message.strip("\n") for message in re.split(r"\n\n(?=<key>)", messages)}
        for rule, messages in zip(parts[0::2], parts[1::2], strict=True)
    }


_reviewed: Final = {} if IS_REWRITING else read()


def reviewed(problems: Iterable[Problem]) -> list[tuple[str, str]]:
    """Key path and rule of each problem, in order; AssertionError for one whose message is not in the golden report."""
    found = []
    for problem in problems:
        message = normalized(str(problem))
        if IS_REWRITING:
            _write(problem.rule, message)
        assert message in _reviewed.get(problem.rule, ()), f"{message}\nis not in {GOLDEN.name}; see `make golden`"
        found.append((path_of(problem.place), problem.rule))
    return found


def reviewed_file(file: Path, text: str) -> None:
    """Assert that a golden file has this text; with UPDATE_GOLDEN=1 write it."""
    if IS_REWRITING:
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), f"{file.name} differs; see `make golden`"


def normalized(message: str) -> str:
    """The message without its key, its value, and what differs from run to run: directories, dates, thumbprints."""
    message = message.encode("utf-8", "backslashreplace").decode("utf-8")
    key, _, rest = message.partition("\n")
    # A word alone, such as `cloud`, may stand for itself in the text.
    nested = key.removeprefix("idstack:") if re.search(r"[.\[]", key) else key
    message = f"<key>\n{rest.replace(nested, '<key>')}"
    for pattern, stand_in in _VARYING:
        message = pattern.sub(stand_in, message)
    return message


def _write(rule: str, message: str) -> None:
    if message in _reviewed.setdefault(rule, set()):
        return
    _reviewed[rule].add(message)
    GOLDEN.parent.mkdir(exist_ok=True)
    sections = (f"## {name}\n" + "\n\n".join(sorted(_reviewed[name])) + "\n" for name in sorted(_reviewed))
    GOLDEN.write_text("# Messages about the configuration, by rule\n\n" + "\n".join(sections), encoding="utf-8")
