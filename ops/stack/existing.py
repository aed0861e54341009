"""The resources that stopped an `up` because they exist already or are deleted softly, and how to adopt them.

Each provider has its own message, with at most the id. The commands need type, name, parent and provider as well, which
are in the engine's event log.
"""

from __future__ import annotations

import re
import shlex
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, cast

from identity import resource_types
from identity.naming import cluster_of_infrastructure, parse_arm_id, secret_id, vault_id
from identity.plugin_schema import VaultAddress
from ops.stack.environment import is_local
from ops.stack.errors import CommandError, message
from ops.stack.state import events_in, name_of, provider_urn, type_of

_NONE: Final[Mapping[Any, str]] = MappingProxyType({})
# Such as `...::pulumi:providers:idstack::default`, with a version behind it where the SDK gives one.
_IS_DEFAULT: Final = re.compile(r"::default(_[0-9_]+)?$")
# azure-native `provider/pkg/azure/client_azcore.go` and `provider/credential_secret.py`, then ARM's own words.
_CREATED_ALREADY: Final = re.compile(r"cannot create already existing resource '(?P<id>[^']+)'")
_GRANTED_ALREADY: Final = re.compile(r"The ID of the existing role assignment is (?P<name>[0-9a-fA-F]{32})")
_VAULT_IS_DELETED: Final = "A vault with the same name already exists in deleted state"
_SECRET_IS_DELETED: Final = "is currently in a deleted but recoverable state"
# terraform-provider-azuread `internal/helpers/tf/errors.go`; Kubernetes' Status of the reason AlreadyExists.
_IN_ENTRA_ALREADY: Final = re.compile(r'A resource with the ID "(?P<id>[^"]+)" already exists')
_IN_CLUSTER_ALREADY: Final = re.compile(r'"\S+" already exists')


@dataclass(frozen=True)
class Existing:
    """A resource of the program that could not be created, and the provider's id of the existing one.

    `parent` and `provider` are URNs. `location` is that of a soft-deleted vault, empty for others. `before` is the
    prefix of `id` in an import, for a type that needs more than the id. `principal` is that of a role assignment of the
    program.
    """

    type: str
    name: str
    id: str
    parent: str
    provider: str
    is_deleted: bool = False
    location: str = ""
    before: str = ""
    principal: str = ""

    def commands(self, stack: str) -> list[str]:
        """The commands that adopt it, in this order."""
        if self.type == resource_types.REGISTERED_CERTIFICATE:
            # An import lacks the certificate, and the next `up` would replace it; the state has it.
            return [shlex.join([".venv/bin/idstack", "recover", "--stack", stack, "--no-up"])]
        thing = [self.type, self.name, f"{self.before}{self.id}"]
        context = ["--parent", f"parent={self.parent}"]
        # An import uses the default provider by itself, and refuses one as an option.
        if not _IS_DEFAULT.search(self.provider):
            context += ["--provider", f"provider={self.provider}"]
        adopt = shlex.join([".venv/bin/idstack", "import", "--stack", stack, *thing, *context])
        return [shlex.join(self._recover(stack)), adopt] if self.is_deleted else [adopt]

    @property
    def is_deleted_secret(self) -> bool:
        """Whether a vault keeps its name, which `recover` recovers and adopts."""
        return self.is_deleted and self.type != resource_types.VAULT

    def _recover(self, stack: str) -> list[str]:
        if is_local(stack):
            return [".venv/bin/idstack", "local", "recover", self.id]
        vault = parse_arm_id(self.id)
        where = ["--location", self.location, "--subscription", vault.subscription]
        return ["az", "keyvault", "recover", "--name", vault.name, *where]


class ObstacleError(CommandError):
    """A run that was stopped by existing resources; the message names the commands that adopt them.

    `reasons` are the rest of the message.
    """

    def __init__(self, stack: str, obstacles: Sequence[Existing], reasons: Sequence[str]) -> None:
        super().__init__("\n\n".join([*reasons, hint(obstacles, stack)]))
        self.stack = stack
        self.obstacles = tuple(obstacles)
        self.reasons = tuple(reasons)

    def judged(self, obstacles: Mapping[Existing, str | None]) -> CommandError:
        """The error about the obstacles, once their owners are known: why each must not be adopted, None if it may."""
        objections = {obstacle: why for obstacle, why in obstacles.items() if why is not None}
        return CommandError("\n\n".join([*self.reasons, hint([*obstacles], self.stack, objections)]))


def read(lines: Iterable[str]) -> list[Existing]:
    """The resources that exist already, by the lines of the engine's event log, in the order of their failure."""
    events = list(events_in(lines))
    errors: dict[str, str] = {}
    subscriptions: dict[str, str] = {}
    for event in events:
        diagnostic = event.get("diagnosticEvent", {})
        if diagnostic.get("severity") == "error" and diagnostic.get("urn"):
            errors[diagnostic["urn"]] = errors.get(diagnostic["urn"], "") + diagnostic["message"]
        resource = event.get("resourcePreEvent", {}).get("metadata", {}).get("new") or {}
        if resource.get("type") == "pulumi:providers:azure-native":
            subscriptions[resource["urn"]] = resource["inputs"].get("subscriptionId", "")
    resources = []
    for event in events:
        failed = event.get("resOpFailedEvent", {}).get("metadata", {})
        operation, error = failed.get("op", ""), errors.get(failed.get("urn", ""), "")
        if operation.startswith("create") or (operation == "update" and _SECRET_IS_DELETED in error):
            subscription = subscriptions.get(provider_urn(failed["new"]["provider"]), "")
            if existing := _existing(failed["new"], error, subscription):
                resources.append(existing)
    return resources


def hint(resources: Sequence[Existing], stack: str, objections: Mapping[Existing, str] = _NONE) -> str:
    """The remedies for them, in paragraphs.

    `objections` say why some of them must not be adopted.
    """
    deleted = [resource for resource in resources if resource.is_deleted_secret and resource not in objections]
    unknown = [resource for resource in resources if not resource.is_deleted_secret and resource not in objections]
    paragraphs = []
    if deleted:
        listed = "\n".join(f"  {resource.name}: {resource.id}" for resource in deleted)
        recover = shlex.join([".venv/bin/idstack", "recover", "--stack", stack])
        paragraphs.append(message("existing.deleted", listed=listed, recover=recover))
    if unknown:
        listed = "\n".join("\n    ".join((f"  {resource.name}", *resource.commands(stack))) for resource in unknown)
        advice = " ".join(_advice(unknown, stack))
        paragraphs.append(message("existing.not-in-the-state", stack=stack, listed=listed, advice=advice))
    if objections:
        listed = by_reason((f"{resource.name}: {resource.id}", why) for resource, why in objections.items())
        paragraphs.append(message("existing.of-others", stack=stack, listed=listed))
    return "\n\n".join(paragraphs)


def by_reason(objections: Iterable[tuple[str, str]]) -> str:
    """Each reason once, and below it what it concerns, of pairs of both."""
    concerned: dict[str, str] = {}
    for name, why in objections:
        concerned[why] = f"{concerned.get(why, '')}\n    {name}"
    return "\n".join(f"  {why}:{names}" for why, names in concerned.items())


def _advice(resources: Sequence[Existing], stack: str) -> Iterator[str]:
    """What else to know before these are adopted."""
    if any(resource.type == resource_types.ROLE_ASSIGNMENT for resource in resources):
        # HyperShift's names do not depend on the principal (openshift/hypershift pull request 8322).
        yield message("existing.role-assignment", stack=stack)
    if any(resource.is_deleted for resource in resources):
        yield "A recovery takes some seconds."
    yield f"`.venv/bin/idstack recover --stack {stack}` finds and adopts all that exist."
    parents = (resource.parent for resource in resources)
    if clusters := {
        cluster_of_infrastructure(name_of(urn)) for urn in parents if type_of(urn) == resource_types.INFRASTRUCTURE
    }:
        yield message("existing.infrastructure", clusters=", ".join(sorted(clusters)), stack=stack)


def of(resource: Mapping[str, Any], id: str, *, is_deleted: bool = False) -> Existing:
    """The obstacle with this id, of a resource in a plan or in the event log."""
    inputs, type_token = resource["inputs"], resource["type"]
    return Existing(
        type=type_token,
        name=name_of(resource["urn"]),
        id=id,
        parent=resource["parent"],
        provider=provider_urn(resource["provider"]),
        is_deleted=is_deleted,
        location=inputs.get("location", "") if is_deleted else "",
        before=f"{inputs['cloud']}/{inputs['tenantId']}" if type_token == resource_types.CREDENTIAL_SECRET else "",
        principal=inputs.get("principalId", "") if type_token == resource_types.ROLE_ASSIGNMENT else "",
    )


def _existing(resource: Mapping[str, Any], error: str, subscription: str) -> Existing | None:
    inputs = resource["inputs"]
    if match := _CREATED_ALREADY.search(error):
        return of(resource, match["id"])
    if match := _GRANTED_ALREADY.search(error):
        name = uuid.UUID(match["name"])
        return of(resource, f"{inputs['scope']}/providers/Microsoft.Authorization/roleAssignments/{name}")
    if _VAULT_IS_DELETED in error:
        id = vault_id(subscription, inputs["resourceGroupName"], inputs["vaultName"])
        return of(resource, id, is_deleted=True)
    if _SECRET_IS_DELETED in error:
        address = cast(VaultAddress, inputs)
        return of(resource, secret_id(address["vaultId"], address["secretName"]), is_deleted=True)
    if match := _IN_ENTRA_ALREADY.search(error):
        # For a service principal the provider names only the object id.
        return of(resource, match["id"] if "/" in match["id"] else f"/servicePrincipals/{match['id']}")
    if resource["type"].startswith("kubernetes:") and _IN_CLUSTER_ALREADY.search(error):
        metadata = inputs["metadata"]
        return of(resource, "/".join(filter(None, (metadata.get("namespace"), metadata["name"]))))
    return None
