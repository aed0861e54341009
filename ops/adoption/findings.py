"""What `idstack import scripts` shows: of each identity what exists, how it differs, and what the next `up` does."""

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
_STACKED: Final = ((("identity", "found"), ("differs", "next up")), (("identity", "found", "differs", "next up"),))


@dataclass(frozen=True)
class Finding:
    """One line. `differs` is empty where nothing does."""

    identity: str
    found: str
    differs: str
    next_up: str


def findings(control_plane: ControlPlaneFile, existing: FoundResources, matches: Sequence[Match]) -> list[Finding]:
    """All lines: vault, key-vault-user, the catalogue's identities in its order, and what is not adopted."""
    by_owner: dict[str, list[Match]] = {}
    for each in matches:
        by_owner.setdefault(each.owner, []).append(each)
    shared = by_owner.get("", [])
    lines = [*_vault(existing, shared), *_key_vault_user(shared)]
    for row in CONTROL_PLANE:
        own = by_owner.get(row.field, [])
        if row.field in control_plane.identities:
            lines.append(_application(row.field, control_plane, existing, own))
        elif own and existing.vault is not None:
            lines.append(Finding(row.field, "nothing", "the scripts make none", "makes all of it"))
    for data_plane in WORKLOAD if existing.vault is None else DATA_PLANE:
        own = by_owner.get(data_plane.field, [])
        if data_plane.field in existing.managed:
            lines.append(_managed(data_plane.field, existing, own))
        elif own:
            lines.append(Finding(data_plane.field, "nothing", "not in the file", "makes all of it"))
    return [*lines, *_left_alone(control_plane)]


def table(lines: Sequence[Finding], width: int) -> Table:
    """The lines for people, for `width` columns."""
    texts: list[Mapping[str, Text]] = [
        {
            "identity": Text(each.identity),
            "found": Text(each.found),
            "differs": Text(each.differs, "yellow"),
            "next up": Text(each.next_up),
        }
        for each in lines
    ]
    return fitted(texts, _STACKED, width)


def _vault(existing: FoundResources, own: Sequence[Match]) -> Iterator[Finding]:
    if existing.vault is None:
        return
    if any(each.has_type(resource_types.VAULT) for each in own):
        acls = existing.vault["properties"].get("networkAcls") or {}
        differs, done = "", "adopts it"
        if acls.get("bypass", "AzureServices") != "None":
            differs, done = "its firewall lets trusted services pass", "adopts it and lets none of them pass"
        yield Finding("key vault", existing.vault["name"], differs, done)
    else:
        yield Finding("key vault", existing.vault["name"], "", _KNOWN)


def _key_vault_user(own: Sequence[Match]) -> Iterator[Finding]:
    roles = [each for each in own if each.has_type(resource_types.ROLE_ASSIGNMENT)]
    if roles:
        missing = [each for each in roles if each.id is None]
        differs = "no role on the vault itself" if missing else ""
        done = "assigns it there; a wider role stays" if missing else "adopts it"
        yield Finding("key-vault-user", _count(roles, "role"), *_with_replaced(roles, differs, done))


def _application(
    field: str, control_plane: ControlPlaneFile, existing: FoundResources, own: Sequence[Match]
) -> Finding:
    application, secret = existing.applications[field], existing.secrets[field]
    roles = [each for each in own if each.has_type(resource_types.ROLE_ASSIGNMENT)]
    shown = [application.display_name, control_plane.identities[field].secret_name]
    if not own:
        return Finding(field, ", ".join(shown), "", _KNOWN)
    differs, done = list(secret.remarks), ["adopts it"]
    for each in own:
        wanted = each.resource.get("inputs", {}).get("displayName")
        if each.has_type(resource_types.APPLICATION) and wanted not in (None, application.display_name):
            done.append(f"names it {wanted}")
        if each.has_type(resource_types.SERVICE_PRINCIPAL) and each.id is None:
            differs.append("no service principal")
            done.append("makes one")
        if each.has_type(resource_types.CREDENTIAL_SECRET):
            done.append("issues a certificate, as a new version of the secret")
    if roles:
        shown.append(_count(roles, "role"))
    if any(each.id is None for each in roles):
        done.append("assigns the roles that are missing")
    return Finding(field, ", ".join(shown), *_with_replaced(roles, "; ".join(differs), "; ".join(done)))


def _managed(field: str, existing: FoundResources, own: Sequence[Match]) -> Finding:
    identity = existing.managed[field]
    roles = [each for each in own if each.has_type(resource_types.ROLE_ASSIGNMENT)]
    federated = [each for each in own if each.has_type(resource_types.FEDERATED_CREDENTIAL)]
    shown = [identity.id.name]
    if not own:
        return Finding(field, identity.id.name, "", _KNOWN)
    differs, done = (
        [],
        [
            "adopts it"
            if any(each.has_type(resource_types.MANAGED_IDENTITY) and each.id for each in own)
            else "makes another"
        ],
    )
    if federated:
        shown.append(_count(federated, "federated credential"))
    if any(each.id is None for each in federated):
        differs.append("service accounts without a federated credential")
        done.append("makes those that are missing")
    if roles:
        shown.append(_count(roles, "role"))
    if any(each.id is None for each in roles):
        done.append("assigns the roles that are missing")
    return Finding(field, ", ".join(shown), *_with_replaced(roles, "; ".join(differs), "; ".join(done)))


def _left_alone(control_plane: ControlPlaneFile) -> Iterator[Finding]:
    for name in control_plane.others:
        yield Finding(name, control_plane.others[name].secret_name, "no identity of the stack", "leaves it alone")
    certificates = [each for each in control_plane.identities.values() if each.certificate]
    if certificates:
        yield Finding(
            "certificates in the vault",
            f"{len(certificates)} of the identities above",
            "the vault renews them by its own policy, where nobody registers them",
            "leaves them alone, and registered: docs/guides/migration.md says when to remove them",
        )


def _with_replaced(roles: Sequence[Match], differs: str, done: str) -> tuple[str, str]:
    for why in sorted({each.replaced_for for each in roles} - {""}):
        count = sum(each.replaced_for == why for each in roles)
        noun = "role assignment has" if count == 1 else "role assignments have"
        differs = "; ".join(filter(None, [differs, f"{count} {noun} {why}"]))
        done = "; ".join([done, "replaces that one" if count == 1 else "replaces those"])
    if any(each.other_role and each.owner in _KEEPING for each in roles):
        done += " (--keep-roles keeps what is there)"
    return differs, done


def _count(matches: Sequence[Match], noun: str) -> str:
    found = sum(each.id is not None for each in matches)
    return f"{found} of {len(matches)} {noun}{'' if len(matches) == 1 else 's'}"
