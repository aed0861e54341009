"""The emulated provider plugins do what the real ones do, from the first `up` to `down`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from ops.stack import plugins
from tests.engine.small_stack import small_stack
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
    emulated_ones = PROJECT / "cloud/emulated/bin"
    monkeypatch.setenv("PATH", f"{emulated_ones}{os.pathsep}{os.environ['PATH']}")
    with small_stack(tmp_path, "stack", providers="azure-native") as stack:
        [script] = stack.state.glob("pulumi/home/plugins/resource-azure-native-*/pulumi-resource-azure-native")

        assert f"real run {emulated_ones}/" in script.read_text(encoding="utf-8")
        assert stack.preview()["vault-vault"] == "create"
