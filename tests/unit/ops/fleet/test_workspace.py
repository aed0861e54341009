"""The workspace's image: what is in it, as whom it runs, and what it does in the place of the engine."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from ops.fleet.workspace.__main__ import command
from ops.stack import plugins
from ops.stack.environment import variables
from ops.stack.plugins import cached, install_pinned
from tests.architecture.source import ROOT
from tests.architecture.test_rooms import ROOMS
from tests.unit.ops.stack.releases import Releases
from tools.downloads import this_platform

DIRECTORY: Final = ROOT / "ops/fleet/workspace"
_AGENT: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PULUMI_HOME": "/share/home", "HOME": "/share/home"}


def instructions() -> list[list[tuple[str, str]]]:
    """Keyword and argument of each instruction, by build stage."""
    text = re.sub(r"^#.*\n", "", (DIRECTORY / "Containerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    stages = re.split(r"^(?=FROM )", text.replace("\\\n", ""), flags=re.MULTILINE)[1:]
    return [
        [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in stage.splitlines() if line]
        for stage in stages
    ]


def test_the_image_has_every_room_that_a_stack_on_azure_needs() -> None:
    copied = {argument.split("/")[0] for keyword, argument in instructions()[0] if keyword == "COPY"}
    others = {"__main__", "emulated", "examples", "localcloud", "tools/bench", "tools/docs"}
    assert copied & ROOMS.keys() == ROOMS.keys() - others
    arguments = {argument for _, argument in instructions()[0]}
    assert {"requirements.txt ./", "Pulumi.yaml __main__.py pyproject.toml ./"} <= arguments
    # None of a stack's files.
    assert not re.search(r"^COPY .*(\*|Pulumi\.\w+\.yaml|^COPY \. )", (DIRECTORY / "Containerfile").read_text(), re.M)


def test_it_starts_from_the_probes_base_by_digest_as_the_user_of_the_operators_restricted_profile() -> None:
    probe = (ROOT / "identity/credentials/Containerfile").read_text(encoding="utf-8")
    bases = {argument.split()[0] for stage in instructions() for keyword, argument in stage if keyword == "FROM"}
    assert bases == set(re.findall(r"^FROM (\S+)", probe, re.MULTILINE))
    assert dict(instructions()[1])["USER"] == "1000:1000"
    copied = [argument for keyword, argument in instructions()[1] if keyword == "COPY"]
    assert "ops/fleet/workspace/pulumi /usr/local/bin/pulumi" in copied
    assert all((DIRECTORY / script).stat().st_mode & 0o111 for script in ("pulumi", "prepare"))


def test_the_image_has_the_pinned_plugins_where_prepare_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    homes: list[str] = []

    def provide(stack: str, environment: Mapping[str, str]) -> None:
        homes.append(environment["PULUMI_HOME"])

    monkeypatch.setattr(plugins, "provide_pinned", provide)
    [line] = [argument for _, argument in instructions()[0] if argument.startswith("PULUMI_HOME=")]
    home, *_, program = shlex.split(line)
    monkeypatch.setenv(*home.split("="))

    exec(program)  # noqa: S102 - a line of the image's file

    assert homes == ["/opt/pulumi"]
    assert f"{homes[0]}/plugins" in (DIRECTORY / "prepare").read_text(encoding="utf-8")


def test_the_pods_user_may_start_the_plugins_that_another_user_has_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    releases = Releases.in_folder(tmp_path, monkeypatch)
    releases.publish("azuread", "1.2.3", "-".join(this_platform()))
    environment = variables("workspace", {**_AGENT, "PULUMI_HOME": str(tmp_path / "pulumi")})
    assert install_pinned("azuread", "1.2.3", environment) is None
    plugin = cached("azuread", "1.2.3", environment)
    assert not plugin.parent.stat().st_mode & 0o077, "the engine itself opens it"

    [script] = [argument for keyword, argument in instructions()[0] if keyword == "RUN" and "chmod" in argument]
    subprocess.run(["/bin/sh", "-c", script.replace("/opt/pulumi", str(tmp_path / "pulumi"))], check=True)

    assert plugin.parent.stat().st_mode & 0o077 == 0o055
    assert plugin.stat().st_mode & 0o077 == 0o055


def test_the_engine_runs_with_what_idstack_gives_a_stack_on_azure() -> None:
    line, environment = command(["stack", "ls"], {**_AGENT, "IDSTACK_NOW": "1", "PULUMI_DEBUG_GRPC": "/tmp/x"})

    assert environment == variables("hc1-prod", _AGENT) | {"PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER": "true"}
    assert environment["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] == "true"
    assert Path(line[0]).name == "pulumi"
    assert Path(line[0]).parent != Path("/usr/local/bin"), "it must not call itself"
    assert line[1:] == ["stack", "ls"]


@pytest.mark.parametrize(
    ("arguments", "added"),
    [
        (["--non-interactive", "up", "--yes", "--stack", "hc1-prod"], ["--policy-pack", "policies"]),
        (["preview", "--diff"], ["--policy-pack", "policies"]),
        (["--non-interactive", "stack", "select", "up"], []),
        (["config", "set-all", "--json", "{}"], []),
        (["version"], []),
        ([], []),
    ],
)
def test_policies_run_with_up_and_preview_as_with_idstack(arguments: list[str], added: list[str]) -> None:
    line, _ = command(arguments, _AGENT)
    assert line[1:] == [*arguments, *added]


def _run(*arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "ops.fleet.workspace", *arguments],
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_agents_install_installs_nothing() -> None:
    done = _run("--non-interactive", "install", environment={"PATH": "/nowhere"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = _run("version", environment=_AGENT)  # it becomes the engine
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"v3\.\d+\.\d+\n", done.stdout)


def test_the_engine_knows_the_option_by_which_the_agent_follows_a_run() -> None:
    line = ("up", "--event-log", "/nowhere/events", "--help")

    of_the_agent = _run(*line, environment={**_AGENT, "PULUMI_DEBUG_COMMANDS": "true"})
    of_anybody = _run(*line, environment=_AGENT)

    assert (of_the_agent.returncode, of_the_agent.stderr) == (0, "")
    assert "unknown flag: --event-log" in of_anybody.stderr, "the engine needs no variable any more"


def test_the_project_is_a_directory_of_links_to_the_image(tmp_path: Path) -> None:
    image, share = tmp_path / "image", tmp_path / "share"
    for name in (".venv", ".tools", "ops", "provider"):
        (image / name).mkdir(parents=True)
    (image / "Pulumi.yaml").write_text("name: idstack\n")
    (tmp_path / "plugins").mkdir()
    share.mkdir()
    script = (DIRECTORY / "prepare").read_text(encoding="utf-8")
    script = script.replace("/opt/idstack", str(image)).replace("/opt/pulumi", str(tmp_path))
    script = script.replace(" /share", f" {share}")
    for _ in range(2):  # a pod whose first container runs again finds what it left
        subprocess.run(["/bin/sh", "-c", script], check=True)

    assert {path.name: path.is_symlink() for path in (share / "workspace").iterdir()} == dict.fromkeys(
        (".venv", ".tools", "ops", "provider", "Pulumi.yaml"), True
    )
    assert (share / "home/plugins").resolve() == tmp_path / "plugins"
    assert not list((image / "ops").iterdir()), "a second run links into the image"
