"""The owner of a secret, by the owner id in its tags: a secret of another stack is not overwritten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from identity.azure.records import SecretMetadata
from identity.credentials.secret_tags import OWNER
from plugin import PluginError

OWNER_ID: Final = "ownerId"


def kept_owner(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> Mapping[str, Any]:
    """The new inputs, with the previous owner id where they have none: a run that only renews does not know it."""
    if old is None or OWNER_ID in new or OWNER_ID not in old:
        return new
    return {**new, OWNER_ID: old[OWNER_ID]}


def refuse_foreign(urn: str, current: SecretMetadata | None, *known: Mapping[str, Any]) -> None:
    """Raise `PluginError` if the secret has the owner id of another stack; a secret without the tag passes.

    Args:
        known: the new and the previous inputs. A cluster that has moved here has the id of its former stack until the
            first write.
    """
    owner = None if current is None else current.tags.get(OWNER)
    if current is None or owner is None or owner in [inputs.get(OWNER_ID) for inputs in known]:
        return
    stack = urn.split("::")[0].rpartition(":")[2]
    raise PluginError(
        f"{current.id} was not written: it carries the owner id {owner}, which is another stack's; accepted: a secret "
        f"of this stack ({known[0].get(OWNER_ID, 'without an owner id')}). Give the hosted cluster or its secret "
        f"another name. Only if no stack has it, because this one lost its state or was destroyed since: "
        f"`.venv/bin/idstack recover --stack {stack} --owner {owner}` makes it this stack's again"
    )
