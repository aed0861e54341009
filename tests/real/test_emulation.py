"""The emulated provider plugins do what the real ones do, from the first `up` to `down`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from ops.stack import plugins
from tests.harness import PROJECT
from tests.real.journey import Told, differences, travel

# Those that `make real` was asked for, all of them if it was not; one that is not available is a failure.
_REAL: Final = sorted(plugins.parse(os.environ.get(plugins.VARIABLE) or plugins.REAL))


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return travel(tmp_path_factory.mktemp("emulated"), plugins.EMULATED)


@pytest.mark.real
@pytest.mark.parametrize("name", _REAL)
def test_the_engine_is_told_the_same(name: str, emulated: Told, tmp_path: Path) -> None:
    real = travel(tmp_path, name)

    assert "\n".join(differences(emulated, real)) == ""


@pytest.mark.slow
def test_a_plugin_on_path_is_started_as_a_real_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the comparison needs but a real plugin, for which an emulated one stands."""
    plugin = PROJECT / "cloud/emulated/bin/pulumi-resource-azure-native"
    on_path, starts = tmp_path / plugin.name, tmp_path / "starts"
    on_path.write_text(f'#!/bin/sh\necho >> {starts}\nexec {plugin} "$@"\n', encoding="utf-8")
    on_path.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (root := tmp_path / "stack").mkdir()

    told = travel(root, "azure-native")

    # At least once for its version and once in each stage.
    assert len(starts.read_text(encoding="utf-8")) > len(told)
    assert [stage for stage, what in told.items() if not what] == ["preview"]
