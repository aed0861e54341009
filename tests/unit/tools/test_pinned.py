"""Go builds what go.sum names and nothing else, whatever the caller has set; no network is needed to see that."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tools import golang, pinned
from tools.steps import ProcessError, run

_MODULE = "example.com/greeting"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that needs another one, which a proxy in a folder has; its go.sum is as Go writes it."""
    _publish(tmp_path / "proxy", "hello")
    for name, value in (
        ("GOPROXY", (tmp_path / "proxy").as_uri()),
        ("GOMODCACHE", str(tmp_path / "modules")),
        ("GONOSUMDB", "*"),
        ("GOTOOLCHAIN", "local"),
    ):
        monkeypatch.setenv(name, value)
    folder = tmp_path / "client"
    folder.mkdir()
    (folder / "go.mod").write_text(f"module client\n\ngo 1.21\n\nrequire {_MODULE} v1.0.0\n")
    (folder / "main.go").write_text(f'package main\n\nimport "{_MODULE}"\n\nfunc main() {{ println(greeting.Word) }}\n')
    monkeypatch.setenv("GOFLAGS", "-mod=mod -modcacherw")
    run([golang.command(), "mod", "tidy"], directory=folder)
    return folder


def build(folder: Path) -> str:
    """What `tools` does to build a program of a pinned module."""
    return pinned.run_go(folder, "build", "-o", str(folder / "built"), ".", go=golang.command())


def test_a_module_is_built_with_its_line_in_go_sum_alone_whatever_goflags_allow(module: Path) -> None:
    build(module)
    assert (module / "built").exists()
    (module / "go.sum").write_text("")
    with pytest.raises(ProcessError, match=r"missing go\.sum entry"):
        build(module)
    assert (module / "go.sum").read_text() == ""


def test_a_module_that_was_changed_is_refused(module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _publish(tmp_path / "proxy", "another")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "fresh"))
    with pytest.raises(ProcessError, match="checksum mismatch"):
        build(module)


def test_another_go_sum_cannot_be_slipped_in(module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _publish(tmp_path / "proxy", "another")
    other = tmp_path / "other.mod"
    other.write_text((module / "go.mod").read_text())
    (tmp_path / "other.sum").write_text("")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "fresh"))
    monkeypatch.setenv("GOFLAGS", f"-mod=mod -modcacherw -modfile={other}")
    with pytest.raises(ProcessError, match="checksum mismatch"):
        build(module)


def _publish(proxy: Path, word: str) -> None:
    """One version of a module, as the Go module proxy has it."""
    folder = proxy / _MODULE / "@v"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "v1.0.0.info").write_text(json.dumps({"Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z"}))
    (folder / "v1.0.0.mod").write_text(f"module {_MODULE}\n\ngo 1.21\n")
    with zipfile.ZipFile(folder / "v1.0.0.zip", "w") as packed:
        packed.writestr(f"{_MODULE}@v1.0.0/go.mod", f"module {_MODULE}\n\ngo 1.21\n")
        packed.writestr(f"{_MODULE}@v1.0.0/greeting.go", f'package greeting\n\nconst Word = "{word}"\n')
