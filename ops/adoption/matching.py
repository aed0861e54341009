"""The existing resources of a stack's plan: the plan has their names, parents and providers, Azure their ids.

The import file has them, and the table of `idstack import scripts` with their differences and the next `up`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from identity import resource_types
from identity.azure.client import AzureClient
from identity.catalogue import CONTROL_PLANE, DATA_PLANE, WORKLOAD
from identity.settings.schema.problems import path_of
from ops.adoption.entry import FoundResources
from ops.adoption.files import ControlPlaneFile
from ops.outputs.tables import FittedTable, Line
from ops.recovery.orphans import Finders, ids, shown
from ops.stack.engine import Engine
from ops.stack.errors import CommandError, message
from ops.stack.state import Plan, StateResource, name_of, provider_urn, resources_in, with_resources
from ops.world.azure import named_role_assignments, role_assignments_at, role_definition
from ops.world.ownership import KEY_VAULT_USER, Ownership

_KEEPING: Final = frozenset(row.field for row in CONTROL_PLANE)
_ADOPTED: Final = frozenset(
    {
        resource_types.APPLICATION,
        resource_types.SERVICE_PRINCIPAL,
        resource_types.CREDENTIAL_SECRET,
        resource_types.MANAGED_IDENTITY,
        resource_types.ROLE_ASSIGNMENT,
        resource_types.FEDERATED_CREDENTIAL,
        resource_types.VAULT,
    }
)


@dataclass(frozen=True)
class Match:
    """A resource that the next `up` would create.

    `owner` is a field of the HostedCluster API, "" for the vault and the key-vault-user. `id` is the existing
    resource's, in the form of an import; None without one. `replaced_for` is why the next `up` replaces it
    nevertheless, empty if it does not; `other_role` is the GUID of the role, if that is the reason.
    """

    resource: StateResource
    owner: str
    id: str | None
    replaced_for: str = ""
    other_role: str | None = None

    def has_type(self, type_token: str) -> bool:
        return self.resource["type"] == type_token


def match(
    plan: Plan, state: Sequence[StateResource], cluster: str, existing: FoundResources, azure: AzureClient
) -> list[Match]:
    """The plan's creates of the cluster and of shared resources, in the plan's order.

    Raises CommandError for a conflicting role assignment whose principal exists, and CommandError and AzureRefusedError
    as `Finders` and `AzureClient`.
    """
    matcher = _Matcher(Finders(azure, None, existing.subscription, ids(state)), cluster, existing)
    ownership = Ownership.of([step["newState"] for step in plan["steps"] if "newState" in step])
    matches = []
    for step in plan["steps"]:
        resource = step.get("newState")
        if step["op"] != "create" or resource is None or resource["type"] not in _ADOPTED:
            continue
        owner = ownership.owner(step["urn"])
        holder = ownership.holder(step["urn"]) if resource["type"] == resource_types.ROLE_ASSIGNMENT else owner
        if owner.cluster in ("", cluster):
            matches.append(matcher.match(resource, "" if holder == KEY_VAULT_USER else holder.identity))
    return matches


def kept_roles(clusters: Sequence[Mapping[str, Any]], cluster: str, matches: Sequence[Match]) -> dict[str, str]:
    """The `customRole` values with which the next `up` replaces no role of a control-plane identity, by path.

    `clusters` are those of the configuration. Raises CommandError for an identity with several other roles, because
    it has one role at all of its scopes.
    """
    index = next(number for number, entry in enumerate(clusters) if entry.get("name") == cluster)
    other_roles: dict[str, set[str]] = {}
    for match in matches:
        if match.other_role is not None and match.owner in _KEEPING:
            other_roles.setdefault(match.owner, set()).add(match.other_role)
    if several := {owner: roles for owner, roles in other_roles.items() if len(roles) > 1}:
        listed = "\n".join(f"- {owner}: {', '.join(sorted(roles))}" for owner, roles in several.items())
        raise CommandError(message("matching.several-roles", roles=listed))
    return {
        path_of(("hostedClusters", index, "identities", owner, "customRole")): role
        for owner, [role] in other_roles.items()
    }


@dataclass(frozen=True)
class _Matcher:
    finders: Finders
    cluster: str
    existing: FoundResources

    def match(self, resource: StateResource, owner: str) -> Match:
        inputs = shown(resource.get("inputs", {}))
        if resource["type"] == resource_types.ROLE_ASSIGNMENT:
            return self._role(resource, owner, inputs)
        if resource["type"] in (resource_types.APPLICATION, resource_types.SERVICE_PRINCIPAL):
            if (application := self.existing.applications.get(owner)) is None:
                return Match(resource, owner, None)
            principal = application.principal_id and f"/servicePrincipals/{application.principal_id}"
            is_principal = resource["type"] == resource_types.SERVICE_PRINCIPAL
            return Match(resource, owner, principal if is_principal else f"/applications/{application.object_id}")
        id = self.finders.find(resource["type"], inputs)
        if id is not None and resource["type"] == resource_types.CREDENTIAL_SECRET:
            id = f"{inputs['cloud']}/{inputs['tenantId']}{id}"
        return Match(resource, owner, id)

    def _role(self, resource: StateResource, owner: str, inputs: Mapping[str, Any]) -> Match:
        scope, role = inputs["scope"], inputs["roleDefinitionId"].rpartition("/")[2].lower()
        holder = self.existing.applications.get(owner) or self.existing.managed.get(owner)
        principal = inputs.get("principalId") or (None if holder is None else holder.principal_id)
        assignment = named_role_assignments(self.finders.azure, scope, inputs["roleAssignmentName"])
        if assignment is not None:
            is_other = principal is not None and assignment.principal_id.lower() != principal.lower()
            if is_other and (
                assignment.principal_type != "ServicePrincipal"
                or self.finders.azure.directory_object(f"/servicePrincipals/{assignment.principal_id}") is not None
            ):
                at, alive, name = assignment.id, assignment.principal_id, name_of(resource["urn"])
                raise CommandError(
                    message("matching.taken-name", id=at, cluster=self.cluster, principal=alive, owner=name)
                )
            if assignment.role != role:
                reason = f"another role, {self._role_name(scope, assignment.role)}"
                return Match(resource, owner, assignment.id, reason, assignment.role)
            return Match(resource, owner, assignment.id, "another principal" if is_other else "")
        if principal is None:
            return Match(resource, owner, None)
        # Azure refuses a second assignment of the same role to the same principal at the same scope.
        for other in role_assignments_at(self.finders.azure, scope, f"principalId eq '{principal}'"):
            if other.scope.lower() == scope.lower() and other.role == role:
                return Match(resource, owner, other.id, "another name")
        return Match(resource, owner, None)

    def _role_name(self, scope: str, guid: str) -> str:
        definition = role_definition(self.finders.azure, scope, guid)
        if definition is None:
            return guid
        return f'{"the custom role " if definition.is_custom else ""}"{definition.name}"'


# pulumi/pulumi `pkg/resource/deploy/providers/provider_keys.go`
_INTERNAL: Final = "__internal"


def import_file(plan: Plan, matches: Sequence[Match]) -> dict[str, Any]:
    """The existing resources with their parents as components, for `pulumi import --file`.

    A name in the file includes the type, because a program's names are unique per type.
    """
    by_urn = {step["urn"]: step["newState"] for step in plan["steps"] if "newState" in step}
    existing = [match for match in matches if match.id is not None]
    parents: dict[str, StateResource] = {}
    for match in existing:
        urn, ancestors = match.resource.get("parent", ""), []
        while urn in by_urn and "parent" in by_urn[urn]:
            ancestors.append(urn)
            urn = by_urn[urn]["parent"]
        parents |= {urn: by_urn[urn] for urn in reversed(ancestors)}
    new = {step["urn"] for step in plan["steps"] if step["op"] == "create"}
    table = {_key(parent): urn for urn, parent in parents.items() if urn not in new}
    resources = [_entry(parent, by_urn) | {"component": True} for urn, parent in parents.items() if urn in new]
    for match in existing:
        entry = _entry(match.resource, by_urn) | {"id": match.id}
        provider = provider_urn(match.resource.get("provider", ""))
        # An import takes a default provider by itself.
        if provider in by_urn:
            entry["provider"] = name_of(provider)
            table[name_of(provider)] = provider
        resources.append(entry)
    return {"nameTable": table, "resources": resources}


def enter_providers(engine: Engine, path: Path, urns: Collection[str]) -> None:
    """Write the providers of an import file into the state, as the plan has them, unless the state has them.

    The engine creates them with the first `up`, but an import needs them before. Raises CommandError for a provider
    that the stack does not have, and for a preview that fails.
    """
    state = engine.state()
    resources = resources_in(state)
    missing = set(urns) - {resource["urn"] for resource in resources}
    if not missing:
        return
    new = {step["urn"]: step["newState"] for step in engine.planned()["steps"] if step["op"] == "create"}
    if unknown := missing - new.keys():
        raise CommandError(f"{path} names {', '.join(sorted(unknown))}, which the stack does not have; write it again")
    roots = [resource for resource in new.values() if resource["type"] == resource_types.STACK]
    providers: list[StateResource] = []
    for provider in (new[urn] for urn in sorted(missing)):
        # As the engine writes it: the outputs are the inputs except the engine's own.
        outputs = {name: value for name, value in provider.get("inputs", {}).items() if name != _INTERNAL}
        providers.append({**provider, "id": str(uuid.uuid4()), "outputs": outputs})
    engine.replace_state(with_resources(state, [*roots, *providers, *resources]))


def read_import_file(path: Path) -> tuple[list[dict[str, Any]], set[str]]:
    """The entries of an import file, and the URNs in its name table; raises CommandError for another file."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        resources = [{**resource, "type": str(resource["type"])} for resource in document["resources"]]
        return resources, set(document["nameTable"].values())
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError):
        raise CommandError(message("matching.no-import-file", path=path)) from None


def _entry(resource: StateResource, by_urn: Mapping[str, StateResource]) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": resource["type"], "name": _key(resource), "logicalName": name_of(resource["urn"])}
    parent = by_urn.get(resource.get("parent", ""))
    # The stack itself has no parent, and is no entry.
    if parent is not None and "parent" in parent:
        entry["parent"] = _key(parent)
    return entry


def _key(resource: StateResource) -> str:
    return f"{name_of(resource['urn'])} ({resource['type']})"


_KNOWN: Final = "nothing: the state has it"


@dataclass(frozen=True)
class Finding:
    """One line; `differs` is empty without a difference."""

    identity: str
    found: str
    differs: str
    next_up: str

    def to_json(self) -> dict[str, str]:
        return {"identity": self.identity, "found": self.found, "differs": self.differs, "nextUp": self.next_up}


def findings(existing: FoundResources, matches: Sequence[Match]) -> list[Finding]:
    """All lines: vault, key-vault-user, the identities in the catalogue's order, and the resources left alone."""
    by_owner: dict[str, list[Match]] = {}
    for match in matches:
        by_owner.setdefault(match.owner, []).append(match)
    lines = list(_shared(existing, by_owner.get("", [])))
    for row in CONTROL_PLANE:
        own = by_owner.get(row.field, [])
        if row.field in existing.named.identities:
            lines.append(_application(row.field, existing, own))
        elif own and existing.vault is not None:
            lines.append(Finding(row.field, "nothing", "the scripts create none", "creates it"))
    for data_plane in WORKLOAD if existing.vault is None else DATA_PLANE:
        own = by_owner.get(data_plane.field, [])
        if data_plane.field in existing.managed:
            lines.append(_managed(data_plane.field, existing, own))
        elif own:
            lines.append(Finding(data_plane.field, "nothing", "not in the file", "creates it"))
    return [*lines, *_left_alone(existing.named)]


def table(lines: Sequence[Finding]) -> FittedTable:
    texts: list[Line] = [
        {
            "identity": line.identity,
            "found": line.found,
            "differs": Text(line.differs, "yellow"),
            "next up": line.next_up,
        }
        for line in lines
    ]
    return FittedTable(texts)


def _shared(existing: FoundResources, own: Sequence[Match]) -> Iterator[Finding]:
    """The lines of the vault and the key-vault-user."""
    if existing.vault is not None:
        differs, action = "", "adopts it"
        if not any(match.has_type(resource_types.VAULT) for match in own):
            action = _KNOWN
        elif (existing.vault["properties"].get("networkAcls") or {}).get("bypass", "AzureServices") != "None":
            differs, action = "its firewall admits trusted services", "adopts it and admits no trusted services"
        yield Finding("key vault", existing.vault["name"], differs, action)
    roles = [match for match in own if match.has_type(resource_types.ROLE_ASSIGNMENT)]
    if roles:
        is_missing = any(role.id is None for role in roles)
        differs = "no role at the vault itself" if is_missing else ""
        action = "assigns it; a wider role stays" if is_missing else "adopts it"
        yield Finding("key-vault-user", _count(roles, "role"), *_with_replaced(roles, differs, action))


def _application(field: str, existing: FoundResources, own: Sequence[Match]) -> Finding:
    application = existing.applications[field]
    names = [application.display_name, existing.named.identities[field].secret_name]
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


def _left_alone(named: ControlPlaneFile) -> Iterator[Finding]:
    for name, other in named.others.items():
        yield Finding(name, other.secret_name, "no identity of the stack", "leaves it alone")
    certificates = [identity for identity in named.identities.values() if identity.certificate]
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
