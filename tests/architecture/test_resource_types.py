"""The type of a resource and the version of an ARM API are spelt once, in `identity/resource_types.py`."""

from __future__ import annotations

from typing import Final

import pytest

from identity import resource_types
from localcloud.testing.plugins import AZURE_NATIVE as RESOURCES
from tests.architecture.source import ROOT, constants, place

ROOMS: Final = ("identity", "components", "provider", "ops", "policies")
NAMES: Final = {name: value for name, value in vars(resource_types).items() if name.isupper()}
TABLE: Final = ROOT / "identity/resource_types.py"
# A proof call has the version that its consumer uses.
CATALOGUE: Final = ROOT / "identity/catalogue.py"


def test_no_other_file_spells_one() -> None:
    found = [(file, node) for file, node in constants(ROOMS) if node.value in NAMES.values()]
    assert not [place(file, node.lineno) for file, node in found if file not in (TABLE, CATALOGUE)]


@pytest.mark.parametrize("name", sorted(name for name, value in NAMES.items() if value in RESOURCES))
def test_the_api_version_of_a_type_is_azure_natives(name: str) -> None:
    """The emulated azure-native has the versions of the SDK's docstrings."""
    row = RESOURCES[NAMES[name]]
    assert row.api_version in {value for constant, value in NAMES.items() if constant.endswith("_API")}
