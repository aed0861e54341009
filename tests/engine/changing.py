"""A change of a stack's configuration, as its preview tells it and as `up` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias

from tests.harness import LocalStack

Key: TypeAlias = tuple[str, str]

# Sign-ins are cheap and nobody waits for replicas longer than needed.
FAST: Final = {"propagation": {"successes": 1, "settleSeconds": 0, "timeoutSeconds": 60}}


@dataclass(frozen=True)
class Change:
    """What a preview said (operation by name), and what `up` did to the documents of the local cloud."""

    preview: dict[str, str]
    added: frozenset[Key]
    removed: frozenset[Key]
    changed: frozenset[Key]

    @classmethod
    def between(cls, before: Mapping[Key, str], after: Mapping[Key, str], *, preview: dict[str, str]) -> Self:
        """What became of `before`, as the local cloud's contents tell it."""
        return cls(
            preview,
            frozenset(after.keys() - before.keys()),
            frozenset(before.keys() - after.keys()),
            frozenset(key for key in before.keys() & after.keys() if before[key] != after[key]),
        )

    @property
    def touched(self) -> frozenset[Key]:
        """What is not as it was."""
        return self.removed | self.changed

    def names(self, *operations: str) -> set[str]:
        """Names of the resources that the preview would do this to."""
        return {name for name, operation in self.preview.items() if operation in operations}


def bring_up(stack: LocalStack, **configuration: Any) -> Change:
    """Preview the stack with these keys, bring it up, and see that nothing is left to do."""
    stack.configure(**configuration)
    foreseen, before = stack.preview(), stack.contents()
    stack.up()
    after = stack.contents()
    assert stack.preview() == {}
    return Change.between(before, after, preview=foreseen)


def refused(stack: LocalStack, **configuration: Any) -> list[str]:
    """What preview and `up` say with these keys, each of which must fail and change nothing."""
    before = stack.contents()
    with stack.configured(**configuration):
        said = []
        for command in (("preview",), ("up", "--yes", "--skip-preview")):
            done = stack.pulumi(*command, check=False)
            assert done.returncode != 0, f"{command} was not refused: {done.stdout}"
            assert "Traceback" not in done.stdout + done.stderr
            said.append(done.stdout + done.stderr)
    assert stack.contents() == before
    return said
