"""The tags that name an object's stack: by its name, for people, and by its owner id."""

from __future__ import annotations

import pulumi

from identity.credentials.secret_tags import OWNER
from identity.naming import STACK_TAG, owner_mark, stack_tag
from identity.settings import Settings


def application_tags(name: str, stack_owner: pulumi.Input[str] | None) -> list[pulumi.Input[str]]:
    """The tags of an Entra application; `name` is that of its component, unique in the stack."""
    tag = f"{stack_tag(pulumi.get_project(), pulumi.get_stack())}:{name}"
    if stack_owner is None:
        return [tag]
    return [tag, pulumi.Output.from_input(stack_owner).apply(owner_mark)]


def identity_tags(settings: Settings, stack_owner: pulumi.Input[str] | None) -> dict[str, pulumi.Input[str]]:
    """The tags of a managed identity, with the configured ones."""
    tag = stack_tag(pulumi.get_project(), pulumi.get_stack())
    owner = {} if stack_owner is None else {OWNER: stack_owner}
    return {**settings.tags, STACK_TAG: tag, **owner}
