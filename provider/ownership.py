"""Whose a secret is, by the owner id in its tags: what another stack has written is not overwritten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from identity.access.records import SecretMetadata
from identity.credentials.secret_tags import OWNER
from plugin import PluginError

OWNER_ID: Final = "ownerId"


def kept_owner(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> Mapping[str, Any]:
    """The new inputs, with the owner id of before where they have none: a run that only renews does not know it."""
    if old is None or OWNER_ID in new or OWNER_ID not in old:
        return new
    return {**new, OWNER_ID: old[OWNER_ID]}


def refuse_foreign(urn: str, found: SecretMetadata | None, *known: Mapping[str, Any]) -> None:
    """Raise `PluginError` if the secret carries the owner id of another stack; one without such a tag may be anybody's.

    Args:
        known: the resource's inputs, and those of before: a cluster that has moved here carries the id of the stack
            that it came from, until the first write.
    """
    owner = None if found is None else found.tags.get(OWNER)
    if found is None or owner is None or owner in [each.get(OWNER_ID) for each in known]:
        return
    stack = urn.split("::")[0].rpartition(":")[2]
    raise PluginError(
        f"{found.id} was not written: it carries the owner id {owner}, which is another stack's; accepted: a secret of "
        f"this stack ({known[0].get(OWNER_ID, 'without an owner id')}). Give the hosted cluster or its secret another "
        f"name. Only if no stack has it, because this one lost its state or was destroyed since: `.venv/bin/idstack "
        f"recover --stack {stack} --owner {owner}` makes it this stack's again"
    )
