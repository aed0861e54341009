"""What a document names exists: files, links, records, make targets, `idstack` commands and their options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from localcloud.testing.running import cli as local_cloud
from ops.cli import COMMANDS, application
from tests.architecture.source import ROOT

DOCUMENTS: Final = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
TARGETS: Final = frozenset(re.findall(r"^([a-z\d-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
_RECORDS: Final = {page.name[:4] for page in (ROOT / "docs/decisions").glob("[0-9]*.md")}
_CITED: Final = re.compile(r"\b(?:decision )?record (\d{4})\b|docs/decisions/(\d{4})")
FENCE: Final = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\]\((?!https?:|#)(?P<path>[^)#]+)")
_ROOMS: Final = ("components", "identity", "ops", "plugin", "policies", "provider", "tools", "cloud", "tests")
# Another project's modules are no Python, or begin in other folders.
_MODULE: Final = re.compile(rf"(?<![\w./-])((?:{'|'.join(_ROOMS)})/[\w/]+\.py)\b")
_PATH: Final = re.compile(r"[\w.-]+(/[\w.-]+)+/?")
# The end of the part of a command line that the shell gives to one program.
_END: Final = re.compile(r"\s(?:[|>&;#]|--\s).*")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_a_path_in_a_document_exists(document: Path) -> None:
    """Paths that begin outside of the repository's folders (another project's, a pod's) are not looked at."""
    text = document.read_text(encoding="utf-8")
    named = [span.split("::")[0] for span in _spans(text)]
    paths = [path for path in named if _PATH.fullmatch(path) and _is_ours(path)]

    assert not [path for path in paths if not (ROOT / path).exists()]
    assert not [link["path"] for link in _LINK.finditer(text) if not (document.parent / link["path"]).exists()]


@pytest.mark.parametrize("folder", ["docs", "docs/decisions"])
def test_every_page_is_in_its_index(folder: str) -> None:
    index = ROOT / folder / "README.md"
    linked = set(re.findall(r"\]\(([\w/.-]+\.md)\)", index.read_text(encoding="utf-8")))
    pages = {str(page.relative_to(index.parent)) for page in index.parent.rglob("*.md")} - {"README.md"}

    assert {page for page in pages if not re.match(r"decisions/\d", page)} <= linked


def test_a_module_that_a_source_names_exists() -> None:
    """By its path from the root, or in a package's docstring by its name."""
    modules = {
        (file, module, ROOT / "cloud" if file.is_relative_to(ROOT / "cloud") and module.startswith("tests") else ROOT)
        for file in (file for room in _ROOMS if room != "tests" for file in (ROOT / room).rglob("*.py"))
        for module in _MODULE.findall(file.read_text(encoding="utf-8"))
    }
    within = {
        (file, module, file.parent)
        for file in (file for room in _ROOMS for file in (ROOT / room).rglob("__init__.py"))
        for module in re.findall(r"`([a-z_]+(?:\.py|/))`", file.read_text(encoding="utf-8"))
    }

    assert len(modules) > 20
    assert len(within) > 8
    assert sorted((str(file), name) for file, name, folder in modules | within if not (folder / name).exists()) == []


def test_a_record_that_is_cited_exists() -> None:
    sources = [path for room in _ROOMS for path in (ROOT / room).rglob("*.py")]
    cited = {
        (str(path.relative_to(ROOT)), next(filter(None, match)))
        for path in (*DOCUMENTS, *sources)
        for match in _CITED.findall(" ".join(path.read_text(encoding="utf-8").split()))
    }

    assert len(cited) > 10
    assert sorted(place for place in cited if place[1] not in _RECORDS) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_a_command_in_a_document_exists(document: Path) -> None:
    """Between back quotes; `test_pages.py` parses whole console lines."""
    text = document.read_text(encoding="utf-8")

    assert not [problem for line in _spans(text) if (problem := _problem(line))]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (".venv/bin/idstack up --stack dev", None),
        ("make upp", "make has no target upp"),
        (".venv/bin/idstack rotate --identity ingress --revoke", None),
        (".venv/bin/idstack export hypershift", None),
        ("idstack local env --json", None),
        ("idstack import azure-native:keyvault:Vault vault-vault <id> --parent parent=<urn>", None),
        ("idstack import scripts --clustr hc1", "idstack import scripts has no option --clustr"),
        ("idstack export kubernetes", "idstack export has no command kubernetes"),
        ("idstack status --jason", "idstack status has no option --jason"),
        ("idstack rbac <object id> --stack dev | kubectl apply -f -", None),
    ],
)
def test_an_unknown_target_command_or_option_is_reported(line: str, problem: str | None) -> None:
    assert _problem(line) == problem


def _is_ours(path: str) -> bool:
    """Whether the path begins in a folder of the repository; what a run makes beside them comes and goes."""
    first = path.split("/")[0]
    return first != ".localcloud" and (ROOT / first).is_dir()


def _spans(text: str) -> Iterator[str]:
    """What stands between single back quotes."""
    return (" ".join(span.split()) for span in re.findall(r"`([^`]+)`", FENCE.sub("", text)))


def _problem(line: str) -> str | None:
    """What is wrong with a command line of `make` or `idstack`; None if nothing is, or if it is another program's."""
    program, *words = _END.sub("", line).split()
    if program == "make":
        return next((f"make has no target {word}" for word in words[:1] if word not in TARGETS), None)
    if program.removeprefix(".venv/bin/") == "idstack":
        if words and words[0] in COMMANDS:
            return _unknown(COMMANDS[words[0]].load(), f"idstack {words[0]}", words[1:])
        return _unknown(get_command(application()), "idstack", words)
    return None


def _unknown(command: object, name: str, words: list[str]) -> str | None:
    """The first word that is no command of its group, or the first option that the command does not have."""
    if name == "idstack local":
        command = get_command(local_cloud)
    if name == "idstack import" and isinstance(command, TyperGroup) and words and words[0] not in command.commands:
        return None  # `idstack import TYPE NAME ID`, which passes every option on
    if isinstance(command, TyperGroup) and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return f"{name} has no command {words[0]}"
        return _unknown(command.commands[words[0]], f"{name} {words[0]}", words[1:])
    assert isinstance(command, TyperGroup | TyperCommand)
    options = {"--help", *(option for param in command.params for option in (*param.opts, *param.secondary_opts))}
    passes_on = command.context_settings.get("ignore_unknown_options", False)
    given = [word for word in words if word.startswith("--")]
    return next((f"{name} has no option {word}" for word in given if word not in options and not passes_on), None)
