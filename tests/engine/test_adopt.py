"""An `up` that is stopped by what exists already: the printed line leads out (deleted names: `test_drift.py`)."""

from __future__ import annotations

import pytest

from tests.harness import LocalStack

pytestmark = pytest.mark.slow


def test_an_existing_role_assignment_stops_up_with_the_line_to_adopt_it(small: LocalStack) -> None:
    # As HyperShift's CLI makes it: the same name, role, scope and principal.
    forgotten = small.resource("hc1-data-plane-disk-roles-managed")["urn"]
    # The namespace's guard comes after every role.
    small.pulumi("state", "delete", forgotten, "--target-dependents", "--yes")

    stopped = small.idstack("up", check=False)

    assert stopped.returncode == 1
    assert "cannot create already existing resource" in stopped.stdout
    assert (
        "These exist already, but not in the state of the stack local:\n  hc1-data-plane-disk-roles-managed\n"
        in stopped.stderr
    )
    [_] = small.follow(stopped.stderr)
    assert small.preview() == {"hc1-namespace-guard": "create"}
    small.up()
    assert small.preview() == {}
