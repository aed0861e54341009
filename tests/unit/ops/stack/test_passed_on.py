"""Options that neither `idstack` nor the engine knows are refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops.stack.engine import Engine
from ops.stack.errors import WrongUsageError
from ops.stack.passed_on import require_known
from tests.unit.ops.conftest import FakeEngine, Idstack

_HELP = """\
Usage:
  pulumi up [template|url] [flags]

Flags:
      --continue-on-error           Continue updating resources even if an error is encountered
  -m, --message string              Optional message to associate with the update operation
  -r, --refresh string[="true"]     Refresh the state of the stack's resources before this update
  -t, --target stringArray          Specify a single resource URN to update
  -y, --yes                         Automatically approve and perform the update after previewing it

Global Flags:
  -C, --cwd string                   Run pulumi as if it had been started in another directory
"""


@pytest.fixture
def dev(engine: FakeEngine, tmp_path: Path) -> Engine:
    (engine.folder / "pulumi").write_text(f"#!/bin/sh\ncat <<'HELP'\n{_HELP}HELP\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {}\n")
    return Engine("dev", tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--yes", "--refresh", "--target", "urn:pulumi:x"],
        ["-y", "-m", "of today", "-mtext", "--message=x", "--refresh=true", "-C", "/"],
    ],
    ids=["none", "long", "short"],
)
def test_what_the_engine_knows_is_passed_on(dev: Engine, arguments: list[str]) -> None:
    require_known(dev, "up", arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--stak", "dev"],
            '--stak is not an option of `idstack` or `pulumi up`; did you mean "--stack"? Nothing was started',
        ),
        (
            ["--yes", "--xyzzy=1"],
            "--xyzzy is not an option of `idstack` or `pulumi up`. Nothing was started",
        ),
        (["-q"], "-q is not an option of `idstack` or `pulumi up`. Nothing was started"),
        (
            ["dev"],
            "dev is not an option, and `pulumi up` takes options alone here; a stack is named with an option: "
            "`--stack dev`. Nothing was started",
        ),
        (["--yes", "now"], "now is not an option, and `pulumi up` takes options alone here. Nothing was started"),
    ],
    ids=["typing error", "unknown", "unknown letter", "a stack", "a word"],
)
def test_what_nobody_knows_is_refused(dev: Engine, arguments: list[str], message: str) -> None:
    with pytest.raises(WrongUsageError) as refused:
        require_known(dev, "up", arguments, ["--stack", "--json"])

    assert (str(refused.value), refused.value.exit_code) == (message, 2)


@pytest.mark.parametrize(
    "words",
    [("up",), ("preview",), ("renew",), ("rotate",), ("import", "azure-native:keyvault:Vault", "vault", "/id")],
    ids=lambda words: words[0],
)
def test_a_command_refuses_an_unknown_option_first(
    engine: FakeEngine, idstack: Idstack, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    (engine.folder / "pulumi").write_text(
        f'#!/bin/sh\n[ "$2" = --help ] || echo "$*" >> {engine.folder}/calls\ncat <<\'HELP\'\n{_HELP}HELP\n'
    )
    monkeypatch.setattr("ops.stack.local_cloud.do", lambda *_, **__: pytest.fail("the local cloud was started"))

    printed = idstack(*words, "--stack", "local", "--refersh")

    assert (printed.code, printed.output) == (2, "")
    assert printed.error.startswith("idstack: --refersh is not an option of `idstack` or `pulumi ")
    assert 'did you mean "--refresh"? Nothing was started' in printed.error
    assert engine.calls == []
