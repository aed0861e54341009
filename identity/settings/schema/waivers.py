"""The keys of a waiver: a policy that one resource of the stack may break, for a reason that reviewers read."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from identity.settings.schema.base import Model
from identity.settings.schema.schema_node import ValueSpec, matching

# Each is a rule in policies/rules.py.
PolicyName: TypeAlias = Literal[
    "vault-purge-protection",
    "network-open-to-all",
    "role-wider-than-catalogue",
    "certificate-life",
    "image-by-tag",
    "identity-shared-between-clusters",
]
Reason = Annotated[
    str,
    ValueSpec(
        rule="reason",
        accepted="a sentence of at least 20 characters: who accepts it, why, until when",
        blank="<reason>",
        check=matching(r"(?s)\s*\S.{18,}\S\s*"),
    ),
]
ResourceLabel = Annotated[
    str,
    ValueSpec(
        rule="resource-label",
        accepted="the name of a resource in the stack, as previews and the policy's message show it",
        blank="<resource>",
        check=matching(r"\S{1,255}"),
    ),
]


class PolicyWaiverSettings(Model):
    """One waiver."""

    policy: PolicyName = Field(description="The policy that is waived.")
    resource: ResourceLabel = Field(description="The resource that may break it, by its name in the stack.")
    reason: Reason = Field(description="Why; the run prints it beside what is waived.")
