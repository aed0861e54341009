"""Reports of rehearsals, with one thing or another in them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from ops.rehearsal.report import Rehearsal
from ops.rehearsal.sign_ins import SignIns
from ops.rehearsal.steps import Operation, ResourceStep
from ops.world.ownership import ResourceOwner

KMS = ResourceOwner("hc1", "kms")
ROLE = ResourceStep(
    "prod",
    Operation.REPLACE,
    "azure-native:authorization:RoleAssignment",
    "hc1-kms-roles-managed",
    KMS,
    ("roleDefinitionId",),
)
SECRET = ResourceStep("prod", Operation.UPDATE, "idstack:index:CredentialSecret", "hc1-kms-credential-secret", KMS)
VAULT = ResourceStep(
    "prod", Operation.DELETE, "azure-native:keyvault:Vault", "vault-vault", ResourceOwner(), is_protected=True
)
REFUSED = SignIns(KMS, 3, Counter({"AADSTS700016: the tenant has no such application": 2}))


def rehearsal(*steps: ResourceStep, **changes: Any) -> Rehearsal:
    """A rehearsal that found nothing, changed."""
    quiet = Rehearsal(
        stack="prod",
        base="0123456789ab",
        head="checkout",
        seed=1,
        stacks=("prod",),
        steps=steps,
        sign_ins=(SignIns(KMS, 5),),
        second=(),
        left=(),
        seconds={"base": 30.4},
    )
    return replace(quiet, **changes)
