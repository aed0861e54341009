"""Who imports whom: each package only those below it, and nothing of the program around them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from tests.source import PACKAGES, ROOT, files, imports

_PLUGINS: Final = Path("localcloud/testing/plugins.py")
# What a file may import of the checkout, by its folder; the first that fits.
_ALLOWED: Final = {
    _PLUGINS: {"localcloud", "emulated", "plugin"},
    Path("localcloud"): {"localcloud"},
    Path("emulated"): {"localcloud", "emulated", "plugin"},
    Path("tests"): {"localcloud", "emulated", "plugin", "tests"},
}
_TESTING: Final = (Path("localcloud/testing"), Path("tests"))
_OF_THE_CHECKOUT: Final = {
    "tests",
    *(
        entry.stem
        for folder in (ROOT, PACKAGES)
        for entry in folder.iterdir()
        if entry.is_dir() or entry.suffix == ".py"
    ),
}


def offences(file: Path, modules: Iterable[str]) -> list[str]:
    """Those of the modules that a file of this folder must not import."""
    allowed = next(rooms for place, rooms in _ALLOWED.items() if file.is_relative_to(place))
    return [module for module in modules if not _may_import(file, allowed, module)]


def _may_import(file: Path, allowed: set[str], module: str) -> bool:
    room = module.partition(".")[0]
    if room not in _OF_THE_CHECKOUT:
        return True
    if module.startswith("localcloud.testing") and not any(file.is_relative_to(place) for place in _TESTING):
        return False
    # The program has tests of its own, under the same name.
    own = Path(*module.split(".")[:-1])
    return room in allowed and (
        room != "tests" or any((PACKAGES / own.with_suffix(end)).exists() for end in ("", ".py"))
    )


@pytest.mark.parametrize("folder", ["localcloud", "emulated", "tests"])
def test_a_package_imports_only_what_is_below_it(folder: str) -> None:
    found = {str(file): offences(file.relative_to(PACKAGES), imports(file)) for file in files(folder)}

    assert {file: modules for file, modules in found.items() if modules} == {}
    assert len(found) > 15


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("localcloud/core/store.py", "localcloud.testing.arm.ArmWorld"),
        ("localcloud/core/store.py", "emulated.client.RefusalError"),
        ("localcloud/core/store.py", "plugin.Props"),
        ("localcloud/core/store.py", "identity.clouds.Cloud"),
        ("localcloud/testing/arm.py", "emulated.client.RefusalError"),
        ("localcloud/testing/arm.py", "tests.source.ROOT"),
        (str(_PLUGINS), "tests.source.ROOT"),
        ("emulated/client.py", "localcloud.testing.arm.ArmWorld"),
        ("emulated/client.py", "identity.clouds.Cloud"),
        ("emulated/client.py", "tests.source.ROOT"),
        ("tests/source.py", "tools.golang"),
        ("tests/source.py", "tests.harness.LocalStack"),
    ],
)
def test_what_is_above_or_beside_is_refused(file: str, module: str) -> None:
    assert offences(Path(file), ["localcloud.core.clock", "pathlib.Path", module]) == [module]
