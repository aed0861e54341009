"""The emulated provider plugins do what the real ones do, from the first `up` to `down`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from ops.stack import plugins
from tests.real.journey import Told, differences, travel

pytestmark = pytest.mark.real

# Those that `make real` was asked for, all of them if it was not; one that is not available is a failure.
_REAL: Final = sorted(plugins.parse(os.environ.get(plugins.VARIABLE) or plugins.REAL))


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return travel(tmp_path_factory.mktemp("emulated"), plugins.EMULATED)


@pytest.mark.parametrize("name", _REAL)
def test_the_engine_is_told_the_same(name: str, emulated: Told, tmp_path: Path) -> None:
    real = travel(tmp_path, name)

    assert "\n".join(differences(emulated, real)) == ""
