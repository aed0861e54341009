"""Commands out of other projects' Go modules, pinned in folders of tools."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from tools.steps import ProcessError, report, run

ON_PATH = Path("go")


def build(
    step: str,
    module: Path,
    package: str,
    output: Path,
    *,
    version: str,
    flags: str = "",
    tags: str = "",
    go: Path = ON_PATH,
) -> None:
    """Build one command into `output`; raises ProcessError if a step fails.

    Args:
        step: name of the set-up step, for the progress lines.
        version: its version, for the progress lines.
        flags: flags of the linker, besides those that leave out what only a debugger reads.
        tags: build tags.
        go: the go command.
    """
    name = output.name
    options = ("-tags", tags) if tags else ()
    report(f"{step}: fetching the modules of {name} {version}")
    listed = run_go(
        module, "list", "-deps", *options, package, progress=lambda n: f"{name}, module {n}", go=go
    ).splitlines()
    total = sum(not line.startswith("go: ") for line in listed)
    report(f"{step}: building {name} {version}, once; the first build on a machine takes minutes")
    arguments = ("build", "-v", "-ldflags", f"-s -w {flags}".rstrip(), *options, "-o", str(output), package)
    run_go(module, *arguments, progress=lambda n: f"{name}, package {n} of at most {total}", go=go)


def run_go(module: Path, *arguments: str, progress: Callable[[int], str] | None = None, go: Path = ON_PATH) -> str:
    """Run the go command in the module's folder and return what it printed; raises ProcessError if it fails."""
    return run([go, *arguments], directory=module, environment=go_environment(), progress=progress)


def go_environment() -> dict[str, str]:
    """The environment of every Go build: what go.mod and go.sum name, and nothing else, whatever the caller has set.

    With `-mod=readonly` a module without its line in go.sum is an error, and GOFLAGS of the caller's could name another
    go.sum. No C compiler is needed, and nothing is read from the checkout's history.
    """
    return {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}


def files(module: Path) -> list[Path]:
    """The files that pin what a build of the module is made from."""
    return [module / "go.mod", module / "go.sum"]


def version(module: Path, requirement: str) -> tuple[int, ...]:
    """The version of a required module; raises ProcessError if it is not required."""
    return numbers(re.search(rf"{re.escape(requirement)} v(\S+)", (module / "go.mod").read_text()))


def language_version(module: Path) -> str:
    """The oldest Go version that the module builds with."""
    return dotted(numbers(re.search(r"^go (\S+)", (module / "go.mod").read_text(), re.MULTILINE)))


def numbers(match: re.Match[str] | None) -> tuple[int, ...]:
    """The version in a match's first group; raises ProcessError if there is no match."""
    if match is None:
        raise ProcessError("no version found")
    return tuple(int(part) for part in match[1].split("."))


def dotted(version: tuple[int, ...]) -> str:
    """A version as a string, 1.2.3."""
    return ".".join(map(str, version))
