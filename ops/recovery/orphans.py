"""Computes the orphan candidates of a plan, and states with the orphans."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from identity import resource_types
from identity.credentials import rfc3339
from ops.stack.state import (
    UNKNOWN,
    Plan,
    State,
    StateResource,
    name_of,
    provider_urn,
    resources_in,
    with_resources,
    without,
)

# A secret in a plan.
_MASKED: Final = "[secret]"
# One that the engine encrypts as it imports a state (pulumi/pulumi `sdk/go/common/resource/properties.go`).
_SECRET: Final = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}


@dataclass(frozen=True)
class Orphan:
    """A resource of a plan, the provider's id of the existing one, and the components above it that the state lost,
    the outermost first.

    `is_deleted`: a vault keeps the secret deleted. `masked` are the inputs that the plan masks, as they exist.
    """

    resource: StateResource
    id: str
    components: tuple[StateResource, ...] = ()
    is_deleted: bool = False
    masked: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return name_of(self.resource["urn"])


def certificates_since(stack: str) -> str:
    """The message about a state that may be older than a renewal, whose registrations no plan shows."""
    return (
        "certificates that renewals have registered at Entra ID since then stay there; "
        f"`.venv/bin/idstack sweep --stack {stack}` lists them, and deletes them once no pod can use them"
    )


def candidates(plan: Plan, resources: Sequence[StateResource], *, is_lost: bool = False) -> Iterator[StateResource]:
    """The resources that the plan creates and whose creation may have begun, with the plan's known inputs.

    The engine begins to create a resource once all its dependencies are in the state. With `is_lost` the state lost
    these, too, and a provider is enough; but azuread would replace a registration without its certificate.
    """
    reached = {resource["urn"] for resource in resources}
    for resource in _created(plan).values():
        waits = not is_lost or resource["type"] == resource_types.REGISTERED_CERTIFICATE
        if _needs(resource, waits=waits) <= reached:
            if resource["custom"]:
                yield {**resource, "inputs": shown(resource.get("inputs", {}))}
            else:
                reached.add(resource["urn"])


def secrets(plan: Plan, resources: Sequence[StateResource]) -> list[StateResource]:
    """The secrets of vaults that the plan creates by a provider of the state, with the plan's known inputs."""
    urns = {"", *(resource["urn"] for resource in resources)}
    found = (one for one in _created(plan).values() if one["type"] in resource_types.VAULT_SECRETS)
    return [{**one, "inputs": shown(one["inputs"])} for one in found if provider_urn(one["provider"]) in urns]


def components_above(resource: StateResource, plan: Plan) -> tuple[StateResource, ...]:
    """The components above a resource that the plan creates, the outermost first."""
    parent = _created(plan).get(resource.get("parent", ""))
    return () if parent is None else (*components_above(parent, plan), parent)


def _created(plan: Plan) -> dict[str, StateResource]:
    return {step["urn"]: step["newState"] for step in plan["steps"] if step["op"] == "create"}


def ids(resources: Sequence[StateResource]) -> set[tuple[str, str]]:
    """Type and provider's id of all resources; the id alone is not unique."""
    return {(resource["type"], resource["id"]) for resource in resources if "id" in resource}


def unmarked(state: State) -> State:
    """The `state` without the engine's mark of resources that a replacement deletes first (`pendingReplacement`).

    A refresh does not read marked resources. Without the mark it removes deleted ones, so that a plan creates them
    again and finds an existing replacement; a resource with the same id stays.
    """
    kept = [resource.copy() for resource in resources_in(state)]
    for resource in kept:
        resource.pop("pendingReplacement", None)
    return with_resources(state, kept) if kept else state


def settled(state: State, orphans: Sequence[Orphan]) -> State:
    """The refreshed `state` with the orphans, as the engine would have written them.

    The next command reads the outputs (`refreshBeforeUpdate`); until then the inputs replace them. Secrets are missing
    in the inputs, so that the next `up` writes them again, but for those without which it would replace the resource.
    """
    known, now = resources_in(state), rfc3339.render(datetime.now(UTC))
    entered: dict[str, StateResource] = {}
    for orphan in orphans:
        if orphan.is_deleted and orphan.resource["type"] != resource_types.CREDENTIAL_SECRET:
            continue  # the next `up` takes a key over that it finds in the vault
        entered |= {component["urn"]: component for component in orphan.components}
        masked = {**orphan.masked, **_certificate(orphan.resource, known)}
        encrypted = {name: {**_SECRET, "plaintext": json.dumps(value)} for name, value in masked.items()}
        inputs = {**orphan.resource["inputs"], **encrypted}
        outputs = {**inputs, "provenAt": now} if orphan.resource["type"] == resource_types.SIGN_IN_GATE else inputs
        own: StateResource = {**orphan.resource, "inputs": inputs, "outputs": outputs, "refreshBeforeUpdate": True}
        entered[orphan.resource["urn"]] = {**own, "id": orphan.id}
    # What a recovered secret depends on may have to be created after it.
    urns = {*entered, *(resource["urn"] for resource in known)}
    missing = {urn for resource in entered.values() for urn in _needs(resource)} - urns
    whole = with_resources(state, [*known, *entered.values()])
    return without(whole, missing) if missing else whole


def _needs(resource: StateResource, *, waits: bool = True) -> set[str]:
    """The URNs of a resource's dependencies; without `waits` of those alone without which no state may have it."""
    provider = provider_urn(resource.get("provider", ""))
    return {*((resource.get("dependencies") or ()) if waits else ()), resource.get("parent", ""), provider} - {""}


def _certificate(resource: StateResource, resources: Sequence[StateResource]) -> dict[str, Any]:
    """The masked input of a registration: the state's certificate with its key id."""
    key_id = resource["inputs"].get("keyId") if resource["type"] == resource_types.REGISTERED_CERTIFICATE else None
    for known in resources:
        if known["type"] == resource_types.CERTIFICATE and known["outputs"]["keyId"] == key_id:
            return {"value": known["outputs"]["certificatePem"]}
    return {}


def shown(value: Any) -> Any:
    """The inputs, or another value of a plan, without masked and unknown values."""
    if isinstance(value, Mapping):
        return {key: shown(item) for key, item in value.items() if item not in (_MASKED, UNKNOWN)}
    if isinstance(value, list):
        return [shown(item) for item in value if item not in (_MASKED, UNKNOWN)]
    return value
