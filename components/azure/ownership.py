"""The tags that say which stack made a thing: by name for people, and by the stack's owner id."""

from __future__ import annotations

import pulumi

from identity.credentials.secret_tags import OWNER
from identity.naming import STACK_TAG, owner_mark, stack_tag
from identity.settings import Settings


def application_tags(name: str, stack_owner: pulumi.Input[str] | None) -> list[pulumi.Input[str]]:
    """Of an Entra application; `name` is its component's, which no other in the stack has."""
    tag = f"{stack_tag(pulumi.get_project(), pulumi.get_stack())}:{name}"
    if stack_owner is None:
        return [tag]
    return [tag, pulumi.Output.from_input(stack_owner).apply(owner_mark)]


def identity_tags(settings: Settings, stack_owner: pulumi.Input[str] | None) -> dict[str, pulumi.Input[str]]:
    """Of a managed identity, with the configured ones."""
    tag = stack_tag(pulumi.get_project(), pulumi.get_stack())
    owner = {} if stack_owner is None else {OWNER: stack_owner}
    return {**settings.tags, STACK_TAG: tag, **owner}
