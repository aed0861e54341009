"""@azure/identity, unmodified, signs in as identities of the stack and makes their proof calls by Azure's names."""

from __future__ import annotations

import pytest

from tests.harness import LocalStack
from tests.proofs import proof, signed_in
from tools import clients

pytestmark = pytest.mark.clients


@pytest.mark.parametrize("field", ["disk", "kms"])
def test_azure_identity_of_javascript_makes_the_proof_call(stack: LocalStack, field: str) -> None:
    program = clients.javascript() / "request.mjs"

    assert signed_in(stack, field, "node", str(program), *proof(stack, field)) == "200"
