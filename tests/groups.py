"""Groups of tests: those that share a stack, or else a file. A group runs on one worker, and its stack ends with it.

The rules of the architecture are one group: they share what they read, which is every file of the project.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final, TypeVar

import pytest

T = TypeVar("T")

# The fixture of the session that the tests of a file share with other files.
_SHARED: Final[Mapping[str, str]] = {
    "tests/apiserver/test_access.py": "stack",
    "tests/apiserver/test_aks_access.py": "stack",
    "tests/apiserver/test_control_plane.py": "stack",
    "tests/apiserver/test_control_planes.py": "stack",
    "tests/apiserver/test_definitions.py": "stack",
    "tests/apiserver/test_fleet.py": "stack",
    "tests/apiserver/test_late_definitions.py": "stack",
    "tests/apiserver/test_registered_objects.py": "stack",
    "tests/apiserver/test_start.py": "stack",
    "tests/apiserver/test_troubleshooting.py": "stack",
    "tests/e2e/test_key_vault.py": "stack",
    "tests/e2e/test_public_names.py": "stack",
    "tests/e2e/test_sign_in.py": "stack",
    "tests/engine/test_backup.py": "small",
    "tests/engine/test_changes.py": "small",
    "tests/engine/test_doctor.py": "small",
    "tests/engine/test_drift.py": "small",
    "tests/engine/test_import.py": "small",
    "tests/engine/test_isolation.py": "small",
    "tests/engine/test_optional_identities.py": "small",
    "tests/engine/test_policies.py": "small",
    "tests/engine/test_reader.py": "small",
    "tests/engine/test_revoke_now.py": "small",
    "tests/engine/test_rotation.py": "stack",
    "tests/engine/test_safety.py": "stack",
}
_RULES: Final = "tests/architecture/"
_ENDS: Final[dict[str, ExitStack]] = {}


def group_of(node_id: str) -> str:
    """The group of a test, by its id in pytest: the stack that it shares, or else its file."""
    file = node_id.partition("::")[0]
    return _RULES if file.startswith(_RULES) else _SHARED.get(file, file)


def check_group(item: pytest.Item) -> None:
    """Raise UsageError if a test uses a shared stack but its file is not in `_SHARED`: two workers would make it."""
    assert isinstance(item, pytest.Function)
    definitions = item._fixtureinfo.name2fixturedefs
    for name in {*_SHARED.values()} & definitions.keys():
        if definitions[name][-1].scope == "session":
            file = item.nodeid.partition("::")[0]
            if group_of(file) != name:
                raise pytest.UsageError(f'{file} uses the shared fixture "{name}": list it in tests/groups.py')


@contextmanager
def shared(made: AbstractContextManager[T], group: str) -> Iterator[T]:
    """Enter `made` until the end of the group; the session, whose fixture it is, may go on for long."""
    with _ENDS.setdefault(group, ExitStack()) as ends:
        yield ends.enter_context(made)


def end_group(group: str) -> None:
    """End what the tests of a group share."""
    _ENDS.pop(group, ExitStack()).close()
