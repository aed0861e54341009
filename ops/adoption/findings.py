"""The table of `idstack import scripts`: the resources of each identity, their differences, and the next `up`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.table import Table
from rich.text import Text

from identity import resource_types
from identity.catalogue import CONTROL_PLANE, DATA_PLANE, WORKLOAD
from ops.adoption.existing import FoundResources
from ops.adoption.files import ControlPlaneFile
from ops.adoption.matching import Match
from ops.outputs.tables import fitted

_KEEPING: Final = frozenset(row.field for row in CONTROL_PLANE)
_KNOWN: Final = "nothing: the state has it"


@dataclass(frozen=True)
class Finding:
    """One line; `differs` is empty without a difference."""

    identity: str
    found: str
    differs: str
    next_up: str


def findings(control_plane: ControlPlaneFile, existing: FoundResources, matches: Sequence[Match]) -> list[Finding]:
    """All lines: vault, key-vault-user, the identities in the catalogue's order, and the resources left alone."""
    by_owner: dict[str, list[Match]] = {}
    for match in matches:
        by_owner.setdefault(match.owner, []).append(match)
    shared = by_owner.get("", [])
    lines = [*_vault(existing, shared), *_key_vault_user(shared)]
    for row in CONTROL_PLANE:
        own = by_owner.get(row.field, [])
        if row.field in control_plane.identities:
            lines.append(_application(row.field, control_plane, existing, own))
        elif own and existing.vault is not None:
            lines.append(Finding(row.field, "nothing", "the scripts create none", "creates it"))
    for data_plane in WORKLOAD if existing.vault is None else DATA_PLANE:
        own = by_owner.get(data_plane.field, [])
        if data_plane.field in existing.managed:
            lines.append(_managed(data_plane.field, existing, own))
        elif own:
            lines.append(Finding(data_plane.field, "nothing", "not in the file", "creates it"))
    return [*lines, *_left_alone(control_plane)]


def table(lines: Sequence[Finding], width: int) -> Table:
    """The lines, for `width` columns."""
    texts: list[Mapping[str, Text]] = [
        {
            "identity": Text(line.identity),
            "found": Text(line.found),
            "differs": Text(line.differs, "yellow"),
            "next up": Text(line.next_up),
        }
        for line in lines
    ]
    return fitted(texts, width)


def _vault(existing: FoundResources, own: Sequence[Match]) -> Iterator[Finding]:
    if existing.vault is None:
        return
    if any(match.has_type(resource_types.VAULT) for match in own):
        acls = existing.vault["properties"].get("networkAcls") or {}
        differs, action = "", "adopts it"
        if acls.get("bypass", "AzureServices") != "None":
            differs, action = "its firewall admits trusted services", "adopts it and admits no trusted services"
        yield Finding("key vault", existing.vault["name"], differs, action)
    else:
        yield Finding("key vault", existing.vault["name"], "", _KNOWN)


def _key_vault_user(own: Sequence[Match]) -> Iterator[Finding]:
    roles = [match for match in own if match.has_type(resource_types.ROLE_ASSIGNMENT)]
    if roles:
        missing = [role for role in roles if role.id is None]
        differs = "no role at the vault itself" if missing else ""
        action = "assigns it; a wider role stays" if missing else "adopts it"
        yield Finding("key-vault-user", _count(roles, "role"), *_with_replaced(roles, differs, action))


def _application(
    field: str, control_plane: ControlPlaneFile, existing: FoundResources, own: Sequence[Match]
) -> Finding:
    application = existing.applications[field]
    names = [application.display_name, control_plane.identities[field].secret_name]
    differs, actions = list(existing.secrets[field]), ["adopts it"]
    for match in own:
        name = match.resource.get("inputs", {}).get("displayName")
        if match.has_type(resource_types.APPLICATION) and name not in (None, application.display_name):
            actions.append(f"names it {name}")
        if match.has_type(resource_types.SERVICE_PRINCIPAL) and match.id is None:
            differs.append("no service principal")
            actions.append("creates one")
        if match.has_type(resource_types.CREDENTIAL_SECRET):
            actions.append("issues a certificate as a new version of the secret")
    return _finding(field, own, names, differs, actions)


def _managed(field: str, existing: FoundResources, own: Sequence[Match]) -> Finding:
    names, differs = [existing.managed[field].id.name], list[str]()
    is_adopted = any(match.has_type(resource_types.MANAGED_IDENTITY) and match.id for match in own)
    actions = ["adopts it" if is_adopted else "creates another"]
    federated = [match for match in own if match.has_type(resource_types.FEDERATED_CREDENTIAL)]
    if federated:
        names.append(_count(federated, "federated credential"))
    if any(match.id is None for match in federated):
        differs.append("service accounts without a federated credential")
        actions.append("creates the missing ones")
    return _finding(field, own, names, differs, actions)


def _finding(
    field: str, own: Sequence[Match], names: Sequence[str], differs: Sequence[str], actions: Sequence[str]
) -> Finding:
    """The finding with the identity's role assignments; `own` is empty if the state has the identity."""
    if not own:
        return Finding(field, ", ".join(names), "", _KNOWN)
    roles = [match for match in own if match.has_type(resource_types.ROLE_ASSIGNMENT)]
    if roles:
        names = [*names, _count(roles, "role")]
    if any(role.id is None for role in roles):
        actions = [*actions, "assigns the missing roles"]
    return Finding(field, ", ".join(names), *_with_replaced(roles, "; ".join(differs), "; ".join(actions)))


def _left_alone(control_plane: ControlPlaneFile) -> Iterator[Finding]:
    for name in control_plane.others:
        yield Finding(name, control_plane.others[name].secret_name, "no identity of the stack", "leaves it alone")
    certificates = [identity for identity in control_plane.identities.values() if identity.certificate]
    if certificates:
        yield Finding(
            "certificates in the vault",
            f"{len(certificates)} of the identities above",
            "the vault renews them by its own policy and does not register them",
            "leaves them registered: docs/guides/migration.md says when to remove them",
        )


def _with_replaced(roles: Sequence[Match], differs: str, action: str) -> tuple[str, str]:
    for reason in sorted({role.replaced_for for role in roles} - {""}):
        count = sum(role.replaced_for == reason for role in roles)
        noun = "role assignment has" if count == 1 else "role assignments have"
        differs = "; ".join(filter(None, [differs, f"{count} {noun} {reason}"]))
        action = "; ".join([action, "replaces that one" if count == 1 else "replaces those"])
    if any(role.other_role and role.owner in _KEEPING for role in roles):
        action += " (--keep-roles prevents this)"
    return differs, action


def _count(matches: Sequence[Match], noun: str) -> str:
    existing = sum(match.id is not None for match in matches)
    return f"{existing} of {len(matches)} {noun}{'' if len(matches) == 1 else 's'}"
