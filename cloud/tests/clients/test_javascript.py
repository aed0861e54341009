"""@azure/identity, unmodified, signs in by Azure's names and calls ARM and a vault."""

from __future__ import annotations

import pytest

from localcloud.core.clouds import LocalEnvironment
from tests.clients import install
from tests.clients.calls import CALLS, IDENTITY, printed

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("identity")]


@pytest.mark.parametrize("call", CALLS)
def test_azure_identity_of_javascript_makes_the_call(local_cloud: LocalEnvironment, call: str) -> None:
    program = install.javascript() / "request.mjs"

    assert printed(local_cloud, "node", str(program), *CALLS[call], identity=IDENTITY).strip() == "200"
