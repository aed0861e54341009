"""The roles that an adopted hosted cluster keeps, such as those of HyperShift's `--assign-custom-hcp-roles`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from identity.catalogue import CONTROL_PLANE
from identity.settings.schema.problems import path_of
from ops.adoption.matching import Match
from ops.stack.errors import CommandError

_FIELDS: Final = frozenset(row.field for row in CONTROL_PLANE)


def kept_roles(clusters: Sequence[Mapping[str, Any]], cluster: str, matches: Sequence[Match]) -> dict[str, str]:
    """What to write so that the next `up` replaces no role of a control-plane identity, by path.

    `clusters` are those of the configuration, the adopted one among them. Raises CommandError for an identity with
    several other roles: it has one role at all of its scopes.
    """
    index = next(number for number, each in enumerate(clusters) if each.get("name") == cluster)
    found: dict[str, set[str]] = {}
    for each in matches:
        if each.other_role is not None and each.owner in _FIELDS:
            found.setdefault(each.owner, set()).add(each.other_role)
    if several := {owner: roles for owner, roles in found.items() if len(roles) > 1}:
        listed = "\n".join(f"- {owner}: {', '.join(sorted(roles))}" for owner, roles in several.items())
        raise CommandError(
            f"an identity keeps one role at all of its scopes, and these have several others:\n{listed}\nGive each the "
            "same role everywhere, or leave --keep-roles out"
        )
    return {
        path_of(("hostedClusters", index, "identities", owner, "customRole")): role for owner, [role] in found.items()
    }
