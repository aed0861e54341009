"""The command line as a whole: its table of commands, help, completion, and what it imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from identity.aks.login import Login
from identity.aks.sign_in import token_source
from identity.aks.tokens import Token, TokenCache, key_of
from identity.credentials.rfc3339 import utc_now
from identity.login_kinds import LoginKind
from ops.cli import COMMANDS
from ops.stack.environment import ROOT
from tests.unit.ops.conftest import FakeEngine, Idstack

# What only commands need: clients of Azure and Kubernetes, and the engine.
_HEAVY: Final = frozenset({"azure", "cryptography", "httpx", "kubernetes", "msal", "pulumi", "requests", "yaml"})


def keep(login: Login, directory: Path) -> None:
    """Keep a token of this login, as if it had just been asked for."""
    found = token_source(login, {}, utc_now)
    token = Token.issued("kept", now=utc_now(), expires_on=int(utc_now().timestamp()) + 3600)
    assert found.fingerprint is not None
    TokenCache(directory).token(key_of(login, found.fingerprint), utc_now, lambda: token)


def imported(*arguments: str, **environ: str) -> set[str]:
    """The modules that an `idstack` process has at its end."""
    script = (
        "import atexit, sys\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        f"sys.argv = ['idstack', *{arguments!r}]\nfrom ops.__main__ import main\nmain()"
    )
    variables = {**os.environ, **environ}
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=variables, capture_output=True, text=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("option", ["--help", "-h", "--version"])
def test_no_command_is_imported_before_it_runs(option: str) -> None:
    """The number of modules stands for the time: 0.4 s of CPU for `--help`, most of it typer's and rich's."""
    modules = imported(option)
    assert not {name.partition(".")[0] for name in modules} & _HEAVY
    assert not {name for name in modules if name.startswith("ops.commands.")}
    assert len(modules) < 450


def test_yaml_is_imported_where_it_is_read() -> None:
    """kubectl starts `token` for each sign-in, and a shell the completions for each name."""
    modules = imported("token", "--help")
    assert "ops.commands.token" in modules
    assert "yaml" not in modules


def test_a_kept_token_costs_a_few_modules_of_the_standard_library(tmp_path: Path) -> None:
    """kubectl starts it for each call: 0.15 s of CPU, of which typer alone would take half."""
    certificate = tmp_path / "deployer.pem"
    certificate.write_text("only its digest counts")
    login = Login(kind=LoginKind.CERTIFICATE, certificate=certificate)
    keep(login, tmp_path / "tokens")

    modules = imported("token", "--exec", *login.arguments(), IDSTACK_TOKEN_CACHE=str(tmp_path / "tokens"))

    assert "identity.aks.tokens" in modules
    assert "ops.cli" not in modules, "the token was not found"
    assert not {name.partition(".")[0] for name in modules} & {*_HEAVY, "typer", "pydantic", "rich", "jwt"}
    assert len(modules) < 145


def test_every_command_is_in_a_panel_of_the_help_on_one_line(idstack: Idstack) -> None:
    printed = idstack("--help").output
    for panel in ("Deploy", "Inspect", "Credentials", "Access", "Recovery", "Local"):
        assert f"╭─ {panel} ─" in printed
    for row in COMMANDS.values():
        assert f"│ {row.name:10}  {row.summary} " in printed, "the summary must fit 80 columns"
    paragraph = [line.rstrip() for line in idstack("sweep", "--help").output.splitlines()]
    assert paragraph[3] == " List leftover resources in the scope of the stack's configuration: role", (
        "as the screen is"
    )


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_each_command_has_help(engine: FakeEngine, idstack: Idstack, name: str, option: str) -> None:
    printed = idstack(name, option)
    assert (printed.code, printed.error) == (0, "")
    assert f"idstack {name} " in " ".join(printed.output.split()), "the usage names the command as it was typed"
    assert "python -m" not in printed.output
    assert "completion" not in printed.output, "it is an option of `idstack` alone"


def test_wrong_usage_is_code_2_and_an_unknown_command_gets_the_nearest_one(idstack: Idstack) -> None:
    assert idstack("status", "--stakc", "dev").code == 2
    printed = idstack("rotat")
    assert printed.code == 2
    assert "Did you mean 'rotate'?" in printed.error


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("idstack re", ["rehearse", "renew", "recover", "restore"]),
        ("idstack fleet ma", ["matrix"]),
        ("idstack rotate --ti", ["--time-limit"]),
        ("idstack token --login work", ["workload-identity"]),
        ("idstack status --stack lo", ["local", "local-both", "local-hypershift"]),
        ("idstack graph --stack local --cluster h", ["hc1"]),
        ("idstack graph --stack none --cluster h", []),
        ("idstack rotate --identity ing", ["ingress"]),
        ("idstack status --identity ing", ["ingress"]),
        ("idstack explain SecretDis", ["SecretDisabled"]),
        ("idstack rotate --identity hc1/ing", ["hc1/ingress"]),
    ],
)
def test_bash_completes(idstack: Idstack, monkeypatch: pytest.MonkeyPatch, words: str, completed: list[str]) -> None:
    monkeypatch.setenv("_IDSTACK_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert idstack().output.split() == completed


def test_ctrl_c_outside_of_the_engine_has_a_word_and_the_shells_code(
    idstack: Idstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ops.commands.explain._explained", interrupted)

    printed = idstack("explain", "AADSTS700027")

    assert (printed.code, printed.error) == (130, "idstack: interrupted; run the command again\n")
