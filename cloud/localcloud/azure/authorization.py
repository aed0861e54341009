"""Azure RBAC: what a principal may do, and where.

One check serves ARM and every data plane. Role assignments are ARM resources (`arm/authorization.py` writes them), role
definitions are the built-ins of `roles.yaml` and the custom roles, which are ARM resources, too
(`arm/authorization.py`). The rules are those of MicrosoftDocs `role-definitions.md`:

- an action is allowed by any assignment at the scope or above whose role grants it and does not exclude it;
- `notActions` subtracts within one role only and denies nothing: another role that grants the action wins;
- `actions` and `dataActions` never mix: `*` in `actions` grants no access to a secret's value;
- `*` matches any characters, slashes included, and letter case is ignored;
- an assignment with a condition grants an action only if the condition holds (`conditions.py`).

Left out: deny assignments, groups; this project writes none of them. The delay for which a
*removed* assignment keeps working in Azure is left out, too: nothing may rely on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from localcloud.azure import conditions
from localcloud.azure.shared.faults import Faults
from localcloud.azure.shared.refusals import refusal
from localcloud.core import yaml_text
from localcloud.core.clock import now
from localcloud.core.store import Document, Store

ASSIGNMENT_SEGMENT: Final = "/providers/microsoft.authorization/roleassignments/"


PERMISSIONS: Final = ("actions", "notActions", "dataActions", "notDataActions")


@dataclass(frozen=True)
class RoleDefinition:
    """A role. `guid` is the same in every cloud for a built-in one, `role_name` is the display name."""

    guid: str
    role_name: str
    actions: tuple[str, ...]
    not_actions: tuple[str, ...]
    data_actions: tuple[str, ...]
    not_data_actions: tuple[str, ...]

    @classmethod
    def of(cls, guid: str, role_name: str, permission: Mapping[str, Any]) -> RoleDefinition:
        """The role with an object of permissions, by `PERMISSIONS`."""
        return cls(guid, role_name, *(tuple(permission.get(name, ())) for name in PERMISSIONS))

    def grants(self, action: str, *, data: bool) -> bool:
        """Whether this role alone allows the action (`data`: as a data action)."""
        granted, taken = (self.data_actions, self.not_data_actions) if data else (self.actions, self.not_actions)
        return _matches(granted, action) and not _matches(taken, action)


@cache
def built_in_roles() -> Mapping[str, RoleDefinition]:
    """Every built-in role of the local cloud, by GUID in lower case."""
    document = yaml_text.load(Path(__file__).with_name("roles.yaml").read_text(encoding="utf-8"))
    return MappingProxyType({guid: RoleDefinition.of(guid, role["roleName"], role) for guid, role in document.items()})


def role_definition(store: Store, definition_id: str) -> RoleDefinition | None:
    """The role with this ARM id: a built-in one, or a custom role of the tenant; None if there is none."""
    built_in = built_in_roles().get(role_guid(definition_id))
    if built_in is not None:
        return built_in
    document = store.get("arm", definition_id.lower())
    return None if document is None else custom_role(document)


def custom_role(document: Document) -> RoleDefinition:
    """A custom role from its ARM document."""
    properties = document["properties"]
    [permission] = properties["permissions"]
    return RoleDefinition.of(document["name"], properties["roleName"], permission)


@dataclass(frozen=True)
class Attributes:
    """The attributes of the request and of the resource that conditions may use, by name."""

    request: Mapping[str, str] = field(default_factory=dict)
    resource: Mapping[str, str] = field(default_factory=dict)


_NO_ATTRIBUTES: Final = Attributes()


class Authorization:
    """The check every service makes before it answers. Reads role assignments from the store at each call."""

    def __init__(self, store: Store, faults: Faults) -> None:
        self._store = store
        self._faults = faults

    def allowed(
        self,
        object_id: str,
        action: str,
        scope: str,
        *,
        data: bool = False,
        attributes: Attributes | None = _NO_ATTRIBUTES,
    ) -> bool:
        """Whether the principal may perform `action` at `scope` (an ARM id; `data`: on the data plane).

        `attributes` are for conditions; with None every condition counts as fulfilled, which the caller then
        checks by itself.
        """
        granting = (condition for role, condition in self._grants(object_id, scope) if role.grants(action, data=data))
        facts = None if attributes is None else conditions.Facts(action, attributes.request, attributes.resource)
        return any(
            condition is None or facts is None or conditions.parse(condition).holds(facts) for condition in granting
        )

    def has_any_role(self, object_id: str, scope: str) -> bool:
        """Whether the principal has a role at `scope`, above or below it."""
        below = (
            assignment for key, assignment in self._store.items("arm", f"{scope.lower()}/") if ASSIGNMENT_SEGMENT in key
        )
        return any(True for _ in self._grants(object_id, scope)) or any(
            assignment["properties"]["principalId"].lower() == object_id.lower() for assignment in below
        )

    def require(self, object_id: str, action: str, scope: str, attributes: Attributes | None = _NO_ATTRIBUTES) -> None:
        """Refuse a control-plane action that no role grants: 403 `AuthorizationFailed` (ARO-HCP pull request 1611).

        `attributes` as in `allowed`.
        """
        self._require(object_id, action, scope, attributes, "authorization")

    def require_condition(self, object_id: str, action: str, scope: str, attributes: Attributes) -> None:
        """Refuse an action that roles grant under conditions only, none of which holds (`troubleshooting.md`)."""
        self._require(object_id, action, scope, attributes, "authorization or an ABAC condition not fulfilled")

    def _require(self, object_id: str, action: str, scope: str, attributes: Attributes | None, missing: str) -> None:
        if not self.allowed(object_id, action, scope, attributes=attributes):
            raise refusal("AuthorizationFailed", caller=object_id, missing=missing, action=action, scope=scope)

    def require_linked(
        self, object_id: str, action: str, scope: str, linked_action: str, linked: Iterable[str]
    ) -> None:
        """A write that refers to other resources needs `linked_action` on each: 403 `LinkedAuthorizationFailed`.

        Source: kubernetes-sigs/cloud-provider-azure issue 1999.
        """
        refused = [other for other in linked if not self.allowed(object_id, linked_action, other)]
        if refused:
            words = {"caller": object_id, "action": action, "scope": scope, "linked_action": linked_action}
            raise refusal("LinkedAuthorizationFailed", **words, linked=",".join(refused))

    def _grants(self, object_id: str, scope: str) -> Iterator[tuple[RoleDefinition, str | None]]:
        """The roles that reach `scope`, each with the condition of its assignment."""
        effective_before = now() - timedelta(seconds=self._faults.role_delay)
        for ancestor in scope_and_above(scope):
            for _, assignment in self._store.items("arm", ancestor + ASSIGNMENT_SEGMENT):
                properties = assignment["properties"]
                if properties["principalId"].lower() != object_id.lower():
                    continue
                role = role_definition(self._store, properties["roleDefinitionId"])
                if role is not None and datetime.fromisoformat(properties["createdOn"]) <= effective_before:
                    yield role, properties.get("condition")


def role_guid(role_definition_id: str) -> str:
    """The GUID at the end of a role definition id, in lower case."""
    return role_definition_id.rpartition("/")[2].lower()


def scope_and_above(scope: str) -> Iterator[str]:
    """`/subscriptions/s/resourceGroups/g/...` and each prefix of whole `name/value` pairs, the root ("") first."""
    segments = scope.lower().strip("/").split("/")
    for length in range(0, len(segments) + 1, 2):
        yield "".join(f"/{segment}" for segment in segments[:length])


def _matches(patterns: tuple[str, ...], action: str) -> bool:
    return any(conditions.action_matches(pattern, action) for pattern in patterns)
