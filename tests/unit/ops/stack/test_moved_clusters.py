"""A cluster goes from one stack to another by a move of the state, and never by an edit of two files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.world.stacks import refuse_half_moves, refuse_moves
from tests.unit.ops.conftest import FakeEngine, Idstack

_COMPONENT = "idstack:hypershift:HostedCluster"
_SHARED = "organization/idstack/dev"


@dataclass(frozen=True)
class FakeBackend:
    """The engine of one stack of a backend; `states` has the names of the hosted clusters in each state."""

    stack: str
    root: Path
    states: dict[str, list[str]]
    read: list[str] = field(default_factory=list)

    def resources(self) -> list[dict[str, Any]]:
        self.read.append(self.stack)
        others = [{"urn": "urn:pulumi:dev::idstack::azuread:index/application:Application::hc9", "type": "azuread"}]
        urn = f"urn:pulumi:{self.stack}::idstack::{_COMPONENT}::"
        return [*others, *({"urn": urn + name, "type": _COMPONENT} for name in self.states[self.stack])]

    def resources_if_any(self) -> list[dict[str, Any]]:
        return self.resources() if self.stack in self.states else []

    def refuse(self) -> str:
        """Why an `up` is refused; empty if it is not."""
        return self._refusal(refuse_moves)

    def refuse_half(self) -> str:
        """Why another run is refused; empty if it is not."""
        return self._refusal(refuse_half_moves)

    def _refusal(self, check: Callable[[Engine], None]) -> str:
        try:
            check(cast(Engine, self))
        except CommandError as error:
            return str(error)
        return ""


def write(root: Path, stack: str, *clusters: str, shared: str | None = None) -> None:
    config: dict[str, Any] = {"idstack:hostedClusters": [{"name": name} for name in clusters]}
    if shared is not None:
        config["idstack:sharedStack"] = shared
    (root / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump({"config": config}))


def test_a_cluster_that_another_stack_is_to_have_is_not_taken_down(tmp_path: Path) -> None:
    write(tmp_path, "dev", "hc2")
    write(tmp_path, "hc1-dev", "hc1", shared=_SHARED)

    refused = FakeBackend("dev", tmp_path, {"dev": ["hc1", "hc2"], "hc1-dev": []}).refuse()

    assert "hc1 is in the state of dev, and in Pulumi.hc1-dev.yaml: in one change dev would delete" in refused
    assert "move it first, as docs/guides/stacks.md says" in refused
    assert "hc2" not in refused


def test_a_file_that_cannot_be_read_may_have_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.hc1-dev.yaml").write_text("config: [")
    write(tmp_path, "dev", "hc2")

    dev = FakeBackend("dev", tmp_path, {"dev": ["hc1", "hc2"]})
    assert "Pulumi.hc1-dev.yaml cannot be read, and may have hc1, which Pulumi.dev.yaml no longer has" in dev.refuse()

    write(tmp_path, "dev", "hc1", "hc2")
    assert dev.refuse() == "", "nothing leaves"


@pytest.mark.parametrize("left", [["hc2"], ["hc1", "hc2"]], ids=["taken out", "in both files"])
def test_a_stack_does_not_make_what_the_shared_one_still_has(tmp_path: Path, left: list[str]) -> None:
    write(tmp_path, "dev", *left)
    write(tmp_path, "hc1-dev", "hc1", shared=_SHARED)

    refused = FakeBackend("hc1-dev", tmp_path, {"dev": ["hc1", "hc2"], "hc1-dev": []}).refuse()

    assert refused.startswith("nothing was changed in hc1-dev:\n  hc1 is in the state of dev")
    assert "Take it out of Pulumi.dev.yaml" in refused
    assert "move it first, as docs/guides/stacks.md says" in refused


@pytest.mark.parametrize("stack", ["dev", "hc1-dev"])
def test_after_the_split_both_stacks_come_up(tmp_path: Path, stack: str) -> None:
    write(tmp_path, "dev", "hc2")
    write(tmp_path, "hc1-dev", "hc1", shared=_SHARED)

    backend = FakeBackend(stack, tmp_path, {"dev": ["hc2"], "hc1-dev": ["hc1"]})

    assert (backend.refuse(), backend.read) == ("", [stack] if stack == "dev" else ["hc1-dev", "dev"])
    for states in ({"dev": ["hc1", "hc2"], "hc1-dev": []}, backend.states):
        assert FakeBackend(stack, tmp_path, states).refuse_half() == "", "before and after either may be taken down"


@pytest.mark.parametrize(
    "named", [{"hc1-dev"}, set(), {"dev"}, {"dev", "hc1-dev"}], ids=["target", "nobody", "source", "both"]
)
@pytest.mark.parametrize("stack", ["dev", "hc1-dev"])
def test_while_a_move_is_half_done_no_stack_goes_on_whatever_the_files_say(
    tmp_path: Path, stack: str, named: set[str]
) -> None:
    write(tmp_path, "dev", "hc2", *(["hc1"] if "dev" in named else []))
    write(tmp_path, "hc1-dev", *(["hc1"] if "hc1-dev" in named else []), shared=_SHARED)

    backend = FakeBackend(stack, tmp_path, {"dev": ["hc1", "hc2"], "hc1-dev": ["hc1"]})

    for refused in (backend.refuse(), backend.refuse_half()):
        if (stack, named) == ("dev", {"dev"}):
            assert refused == "", "its states are not read, for the file says that the other one has no hc1"
            continue
        assert refused.startswith(f"nothing was changed in {stack}:\n  hc1 is in the states of both dev and hc1-dev")
        assert "docs/guides/stacks.md says how the move is finished" in refused
        assert "leave it out of both files" not in refused
    assert len(backend.read) <= 4, "each state once"


@pytest.mark.parametrize("states", [{"dev": []}, {"dev": ["hc1"]}], ids=["new", "up"])
def test_a_stack_that_nobody_shares_is_not_even_read(tmp_path: Path, states: dict[str, list[str]]) -> None:
    samples = tmp_path / "examples/stacks"
    samples.mkdir(parents=True)
    write(samples, "local-both", "hc1")  # not copied by the project
    for stack, shared in (("dev", None), ("prod", None), ("hc1-prod", "organization/idstack/prod")):
        write(tmp_path, stack, "hc1", shared=shared)
    backend = FakeBackend("dev", tmp_path, states)

    assert (backend.refuse(), backend.read) == ("", [])


@pytest.mark.parametrize(
    ("stack", "own", "other", "states"),
    [
        ("dev", "hc1", "hc1", {"dev": ["hc1"], "hc1-dev": []}),
        ("dev", "hc2", "hc3", {"dev": ["hc1", "hc2"], "hc3-dev": ["hc3"]}),
        ("hc2-dev", "hc1", "hc2", {"dev": ["hc1"], "hc2-dev": []}),
        ("dev", "hc1", "hc2", {"dev": ["hc1"], "hc2-dev": []}),
    ],
    ids=["in both files", "in no file", "new", "new in the other stack"],
)
def test_a_cluster_that_does_not_move_stands_in_nobodys_way(
    tmp_path: Path, stack: str, own: str, other: str, states: dict[str, list[str]]
) -> None:
    write(tmp_path, "dev", own)
    write(tmp_path, f"{other}-dev", other, shared=_SHARED)

    assert FakeBackend(stack, tmp_path, states).refuse() == ""


@pytest.mark.parametrize(
    "text", ["config: [", "- a list", "", "config: none", "config:\n  idstack:hostedClusters: [3]\n"]
)
def test_another_stacks_broken_or_missing_file_stands_in_nobodys_way(tmp_path: Path, text: str) -> None:
    write(tmp_path, "hc1-dev", "hc1", shared=_SHARED)
    assert FakeBackend("hc1-dev", tmp_path, {"hc1-dev": []}).refuse() == "", "the program says that"
    (tmp_path / "Pulumi.hc1-dev.yaml").unlink()
    write(tmp_path, "dev", "hc1")
    (tmp_path / "Pulumi.hc2-dev.yaml").write_text(text)

    assert FakeBackend("dev", tmp_path, {"dev": []}).refuse() == ""


@pytest.mark.parametrize("command", ["up", "preview"])
def test_the_commands_refuse_it_before_the_engine_changes_anything(
    engine: FakeEngine, idstack: Idstack, project: Path, command: str
) -> None:
    write(project, "dev")
    write(project, "hc1-dev", "hc1", shared=_SHARED)
    engine.has_resources({"urn": f"urn:pulumi:dev::idstack::{_COMPONENT}::hc1", "type": _COMPONENT})

    printed = idstack(command, "--stack", "dev")

    assert printed.code == 1
    assert "docs/guides/stacks.md says how the move is finished" in printed.error
    assert engine.calls == [f"stack export --stack {stack} --non-interactive" for stack in ("dev", "hc1-dev")]
