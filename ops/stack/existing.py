"""What stopped an `up` because it exists already, or because something deleted holds its name, and how to adopt it.

The engine's providers say so each in its own words, with at most the id; the commands need type, name, parent and
provider as well, which stand in the engine's event log.
"""

from __future__ import annotations

import json
import re
import shlex
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from identity.naming import parse_arm_id, resource_id
from ops.stack.environment import is_local

_Events: TypeAlias = list[Mapping[str, Any]]

_VAULT: Final = "Microsoft.KeyVault/vaults"
# azure-native `provider/pkg/azure/client_azcore.go`, then ARM's own words.
_CREATED_ALREADY: Final = re.compile(r"cannot create already existing resource '(?P<id>[^']+)'")
_GRANTED_ALREADY: Final = re.compile(r"The ID of the existing role assignment is (?P<name>[0-9a-fA-F]{32})")
_VAULT_IS_DELETED: Final = "A vault with the same name already exists in deleted state"
_SECRET_IS_DELETED: Final = "is currently in a deleted but recoverable state"
# terraform-provider-azuread `internal/helpers/tf/errors.go`; Kubernetes' Status of the reason AlreadyExists.
_IN_ENTRA_ALREADY: Final = re.compile(r'A resource with the ID "(?P<id>[^"]+)" already exists')
_IN_CLUSTER_ALREADY: Final = re.compile(r'"\S+" already exists')


@dataclass(frozen=True)
class Existing:
    """A resource of the program that could not be created, and the provider's id of the thing in its way.

    `parent` and `provider` are URNs. `location` is a soft-deleted vault's.
    """

    type: str
    name: str
    id: str
    parent: str
    provider: str
    is_deleted: bool = False
    location: str = ""

    def commands(self, stack: str) -> list[str]:
        """What a person types, in this order, to make it the stack's."""
        arguments = [".venv/bin/idstack", "import", "--stack", stack, self.type, self.name, self.id]
        context = ["--parent", f"parent={self.parent}", "--provider", f"provider={self.provider}"]
        adopt = shlex.join([*arguments, *context])
        return [shlex.join(self._recover(stack)), adopt] if self.is_deleted else [adopt]

    def _recover(self, stack: str) -> list[str]:
        if is_local(stack):
            return [".venv/bin/idstack", "local", "recover", self.id]
        found = parse_arm_id(self.id)
        subscription = ["--subscription", found.subscription]
        if found.type == _VAULT:
            return ["az", "keyvault", "recover", "--name", found.name, "--location", self.location, *subscription]
        vault, name = found.names
        return ["az", "keyvault", "secret", "recover", "--vault-name", vault, "--name", name, *subscription]


def read(lines: Iterable[str]) -> list[Existing]:
    """All of them in an event log of the engine, in the order in which they failed."""
    events = list(_parsed(lines))
    said: dict[str, str] = {}
    for event in events:
        told = event.get("diagnosticEvent", {})
        if told.get("severity") == "error" and told.get("urn"):
            said[told["urn"]] = said.get(told["urn"], "") + told["message"]
    subscriptions = dict(_subscriptions(events))
    found = []
    for event in events:
        failed = event.get("resOpFailedEvent", {}).get("metadata", {})
        if failed.get("op", "").startswith("create") and failed["urn"] in said:
            subscription = subscriptions.get(_urn(failed["new"]["provider"]), "")
            found += [each for each in [_existing(failed["new"], said[failed["urn"]], subscription)] if each]
    return found


def hint(found: Sequence[Existing], stack: str) -> str | None:
    """What to do about them, for people; nothing about none."""
    if not found:
        return None
    listed = "\n".join(
        "\n".join((f"  {each.name}", *(f"    {command}" for command in each.commands(stack)))) for each in found
    )
    several = f"`make recover STACK={stack}` finds and adopts all that exist. " if len(found) > 1 else ""
    waiting = "Recovering takes some seconds. " if any(each.is_deleted for each in found) else ""
    return (
        f"These exist already, and the stack {stack} does not know them:\n{listed}\n"
        "If they are this stack's, made by HyperShift's CLI for instance or deleted before, the commands adopt them; "
        f"then run `make up STACK={stack}` again. {waiting}{several}"
        "Otherwise delete or rename them. What a stack has adopted, a later `destroy` deletes"
    )


def _existing(resource: Mapping[str, Any], said: str, subscription: str) -> Existing | None:
    inputs, type_token = resource["inputs"], resource["type"]

    def found(id: str, *, is_deleted: bool = False) -> Existing:
        return Existing(
            type=type_token,
            name=resource["urn"].rpartition("::")[2],
            id=id,
            parent=resource["parent"],
            provider=_urn(resource["provider"]),
            is_deleted=is_deleted,
            location=inputs.get("location", "") if is_deleted else "",
        )

    if match := _CREATED_ALREADY.search(said):
        return found(match["id"])
    if match := _GRANTED_ALREADY.search(said):
        name = uuid.UUID(match["name"])
        return found(f"{inputs['scope']}/providers/Microsoft.Authorization/roleAssignments/{name}")
    if _VAULT_IS_DELETED in said:
        return found(
            resource_id(subscription, inputs["resourceGroupName"], _VAULT, inputs["vaultName"]), is_deleted=True
        )
    if _SECRET_IS_DELETED in said:
        names = (inputs["vaultName"], inputs["secretName"])
        secret = resource_id(subscription, inputs["resourceGroupName"], f"{_VAULT}/secrets", *names)
        return found(secret, is_deleted=True)
    if match := _IN_ENTRA_ALREADY.search(said):
        # Of a service principal the provider names the object id alone.
        return found(match["id"] if "/" in match["id"] else f"/servicePrincipals/{match['id']}")
    if type_token.startswith("kubernetes:") and _IN_CLUSTER_ALREADY.search(said):
        metadata = inputs["metadata"]
        return found("/".join(filter(None, (metadata.get("namespace"), metadata["name"]))))
    return None


def _parsed(lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        # Of an engine that was killed the last line may be half a line.
        with suppress(ValueError):
            yield json.loads(line)


def _subscriptions(events: _Events) -> Iterator[tuple[str, str]]:
    """URN and subscription of each azure-native provider."""
    for event in events:
        resource = event.get("resourcePreEvent", {}).get("metadata", {}).get("new") or {}
        if resource.get("type") == "pulumi:providers:azure-native":
            yield resource["urn"], resource["inputs"].get("subscriptionId", "")


def _urn(provider: str) -> str:
    """A provider's URN out of a reference to it, `<urn>::<id>`."""
    return provider.rpartition("::")[0]
