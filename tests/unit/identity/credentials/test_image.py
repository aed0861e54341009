"""The probe's image, built as its Containerfile says but without a container: the probe installs and runs alone.

Each instruction of the build stage is carried out in a directory of the test's own: 6 s on two cores, besides the
download of 7 MB of packages, which pip keeps.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

from tests.unit.identity.credentials.world import CsiMount, Entra, proof

pytestmark = pytest.mark.slow

ROOM: Final = Path(__file__).parents[4] / "identity/credentials"
LOCK: Final = ROOM / "requirements-probe.txt"
VERSION: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"


def instructions(stage: int) -> Iterator[tuple[str, str]]:
    """Keyword and argument of each instruction of a build stage, `FROM` being the first."""
    text = re.sub(r"^#.*\n", "", (ROOM / "Containerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    stages = re.split(r"^(?=FROM )", text.replace("\\\n", ""), flags=re.MULTILINE)
    for line in stages[1 + stage].splitlines():
        if line:
            keyword, _, argument = line.partition(" ")
            yield keyword, argument.strip()


def pins(file: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """The version of each package that a lock installs here, and the hashes it accepts."""
    found = {}
    for entry in re.findall(r"^\S.*?==.*(?:\n .*)*", file.read_text(encoding="utf-8"), re.MULTILINE):
        requirement = Requirement(entry.partition("\\")[0])
        if requirement.marker is None or requirement.marker.evaluate():
            found[requirement.name] = str(requirement.specifier), frozenset(re.findall(r"sha256:\w+", entry))
    return found


@dataclass(frozen=True)
class Image:
    """What the build left behind: the virtual environment with the probe in it."""

    environment: Path

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run something with nothing but the image around it."""
        return subprocess.run(
            [str(self.environment / "bin/python"), "-I", *command],
            cwd=self.environment,
            env={"PATH": os.defpath, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def files(self) -> set[Path]:
        return set(self.environment.rglob("*"))


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The build stage, with its paths moved below a directory of the test's own."""
    root = tmp_path_factory.mktemp("image")

    def moved(argument: str) -> str:
        return argument.replace("/opt/", f"{root}/opt/").replace("python3.11", VERSION)

    for keyword, argument in instructions(0):
        match keyword:
            case "COPY":
                pattern, target = moved(argument).split()
                (root / target).mkdir(parents=True, exist_ok=True)
                for source in ROOM.glob(pattern):
                    shutil.copy(source, root / target)
            case "RUN":
                path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
                done = subprocess.run(
                    ["/bin/sh", "-c", moved(argument)], cwd=root, env={**os.environ, "PATH": path}, check=False
                )
                assert done.returncode == 0, argument
            case _:
                assert keyword == "FROM", f"{keyword}: teach the test what this does"
    return Image(root / "opt/probe")


def test_it_installs_what_the_lock_names_and_nothing_else(image: Image) -> None:
    listed = image.run(
        "-c",
        "from importlib.metadata import distributions\n"
        "for each in distributions(): print(each.name.lower().replace('_', '-'), each.version)",
    )
    installed = dict(line.split() for line in listed.stdout.splitlines())
    assert {name: f"=={version}" for name, version in installed.items()} == {
        name: version for name, (version, _) in pins(LOCK).items()
    }


def test_it_holds_the_credential_room_alone(image: Image) -> None:
    [packages] = image.environment.glob("lib/*/site-packages")
    assert [room.name for room in (packages / "identity").iterdir()] == ["credentials"]
    assert not {"components", "emulated", "localcloud", "ops", "plugin", "provider", "tests"} & {
        path.name for path in packages.iterdir()
    }


def test_its_probe_explains_itself(image: Image) -> None:
    done = image.run("-m", "identity.credentials.probe", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: python -m identity.credentials.probe")


def test_its_probe_proves_a_credential_and_writes_no_file(image: Image, known: Entra, mount: CsiMount) -> None:
    before = image.files()
    done = image.run(
        *("-m", "identity.credentials.probe", "--once"),
        *("--credential", f"file:{mount.path}", "--proof", proof(known)),
        REQUESTS_CA_BUNDLE=str(known.ca_file),
    )
    assert done.returncode == 0, done.stderr
    assert '"ready": true' in done.stdout
    assert image.files() == before, "the root file system is read-only in a pod"


def test_its_versions_and_hashes_are_those_of_the_program() -> None:
    program = pins(ROOM.parents[1] / "requirements.txt")
    for name, (version, hashes) in pins(LOCK).items():
        assert program[name] == (version, hashes), f"{name}: run `make lock`"
        assert hashes, name


def test_it_runs_as_nobody_without_a_shell() -> None:
    final = dict(instructions(1))
    assert final["USER"] == "65532:65532"
    assert final["ENTRYPOINT"] == '["python", "-I", "-m", "identity.credentials.probe"]'


def test_both_stages_start_from_the_same_image_by_digest() -> None:
    bases = [argument.split()[0] for stage in (0, 1) for keyword, argument in instructions(stage) if keyword == "FROM"]
    assert len(set(bases)) == 1
    assert re.fullmatch(r"docker\.io/library/python:3\.11\.\d+-slim-bookworm@sha256:[0-9a-f]{64}", bases[0])
