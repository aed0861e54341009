"""The state of the release before, in the schema of this one (`identity/state_schema.py`).

That release kept every private key in the state, issued both slots of an identity at once, and wrote the secret by
azure-native. Nothing in Azure changes here: the next run of the engine finds a stack that this release could have made,
whose vault does not say which certificate it has, and therefore issues another one as an ordinary renewal.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, cast

from identity.clouds import CLOUDS, DEFAULT_CLOUD, LOCAL_CLOUD
from identity.naming import control_plane_identity_name
from identity.state_schema import CURRENT, FIRST, PROPERTY, UnknownSchema, require_current, schema_of
from ops.stack.earlier_identity import (
    CERTIFICATE,
    GATE,
    OLD_SECRET,
    OWN,
    REGISTRATION,
    SCHEDULE,
    EarlierIdentity,
    inputs_of,
    mapping,
    outputs_of,
)
from ops.stack.engine import Engine
from ops.stack.environment import is_local
from ops.stack.errors import CommandError
from ops.stack.state import Deployment, State, StateResource, name_of

_SECRET: Final = f"{OWN}CredentialSecret"
_PROVIDER: Final = "pulumi:providers:idstack"
_AZURE: Final = "pulumi:providers:azure-native"
_ROOT: Final = "pulumi:pulumi:Stack"
# The components of one identity.
_IDENTITY: Final = "idstack:azure:ControlPlaneIdentity"
_STORED: Final = "idstack:azure:CredentialSecret"
_KEY: Final = "privateKeyPem"
# What a gate had to sign in with.
_OF_GATE: Final = ("certificatePem", _KEY)
# What the secret takes from the certificate and its application; the rest of its inputs is the configuration's.
_OF_CREDENTIAL: Final = (
    "clientId",
    "objectId",
    "thumbprint",
    "generation",
    "notBefore",
    "notAfter",
    "renewAfter",
    "cannotRenewAfter",
    "provenAt",
)


def bring_up_to_date(engine: Engine, report: Callable[[str], None]) -> list[StateResource]:
    """Rewrite the state of a stack that the release before brought up; returns the resources in the state.

    `report` prints a line for the user.

    Raises CommandError for the state of any other release, and for an engine that fails.
    """
    state = engine.state()
    try:
        changed = migrated(state)
    except UnknownSchema as error:
        raise CommandError(str(error)) from None
    if changed is not None:
        engine.replace_state(changed)
        report(
            "the release before kept private keys in the stack's state: they are taken out now, and certificates that "
            "no pod needs the old ones of are issued. Old history and backups still hold keys (docs/upgrading.md)"
        )
    return list((changed or state)["deployment"].get("resources") or ())


def migrated(state: State) -> State | None:
    """The state in this release's schema, None if it is in that. Raises UnknownSchema."""
    resources = list(state["deployment"].get("resources") or ())
    # All of them are looked at: one of another release stops everything.
    old = [each for each in resources if _is_old(each)]
    if not old:
        return None
    return _Migration(state, resources).state()


def _is_old(resource: StateResource) -> bool:
    if _is_old_secret(resource["urn"]):
        return True
    if not resource["type"].startswith(OWN):
        return False
    written = resource.get("inputs", {})
    if schema_of(written) != FIRST:
        require_current(written)
    return schema_of(written) == FIRST


def _is_old_secret(urn: str) -> bool:
    """Whether it is the secret of a credential; a component of that type has no other child."""
    return f"${_STORED}${OLD_SECRET}::" in urn


class _Migration:
    """Works on the resources of one state; everything is computed from them."""

    def __init__(self, state: State, resources: list[StateResource]) -> None:
        self._before = state
        self._resources = resources
        # What waits for its deletion may have the URN of what took its place.
        live = [each for each in resources if not each.get("delete")]
        self._by_urn = {each["urn"]: each for each in live}
        self._children: dict[str, list[StateResource]] = {}
        for each in live:
            self._children.setdefault(each.get("parent", ""), []).append(each)
        self._provider = self._default_provider()

    def state(self) -> State:
        """The state with every resource in this release's schema."""
        renamed = {urn: _renamed(urn) for urn in self._by_urn if _is_old_secret(urn)}
        lost = {
            each["urn"]
            for each in self._by_urn.values()
            if each["type"] == SCHEDULE and self._is_old(each) and self._identity(each).address is None
        }
        done = [self._migrated(each) for each in self._resources if each["urn"] not in lost or each.get("delete")]
        for each in done:
            _refer(each, renamed, lost)
        # A provider comes before its resources. A default one needs nothing itself.
        done.sort(key=lambda each: each["urn"] != self._provider["urn"])
        if self._provider["urn"] not in self._by_urn:
            done.insert(0, self._provider)
        deployment: Deployment = {**self._before["deployment"], "resources": done}
        # What was under way ended with its process, and holds keys as well. `recover` looks at what exists.
        pending = deployment.get("pending_operations")
        if pending:
            deployment["pending_operations"] = [each for each in pending if not _has_key(each["resource"])]
        return {**self._before, "deployment": deployment}

    def _is_old(self, resource: StateResource) -> bool:
        return schema_of(resource.get("inputs", {})) == FIRST

    def _default_provider(self) -> StateResource:
        """The plugin's provider; a stack without a certificate of its own did not have one."""
        for each in self._by_urn.values():
            if each["type"] == _PROVIDER:
                return each
        urn = "::".join([*self._resources[0]["urn"].split("::")[:2], _PROVIDER, "default"])
        # Always the same one for a state.
        made = str(uuid.uuid5(uuid.NAMESPACE_URL, urn))
        return {"urn": urn, "type": _PROVIDER, "custom": True, "id": made, "inputs": {}, "outputs": {}}

    @cached_property
    def _stack_outputs(self) -> Mapping[str, Any]:
        return next((outputs_of(each) for each in self._by_urn.values() if each["type"] == _ROOT), {})

    @cached_property
    def _cloud(self) -> str:
        if is_local(self._resources[0]["urn"].removeprefix("urn:pulumi:").partition("::")[0]):
            return LOCAL_CLOUD
        kind = self._azure.get("environment")
        return next((each.name for each in CLOUDS.values() if each.capz_cloud_type == kind), DEFAULT_CLOUD)

    @cached_property
    def _azure(self) -> Mapping[str, Any]:
        """Settings of the provider that wrote the secrets."""
        return next((inputs_of(each) for each in self._by_urn.values() if each["type"] == _AZURE), {})

    def _identity(self, resource: StateResource) -> EarlierIdentity:
        """The identity that a resource belongs to."""
        component: StateResource | None = resource
        while component is not None and component["type"] != _IDENTITY:
            component = self._by_urn.get(component.get("parent", ""))
        members = [] if component is None else list(self._below(component["urn"]))
        described = {} if component is None else self._described(name_of(component["urn"]))
        vault = self._stack_outputs.get("keyVaultId")
        place = {"cloud": self._cloud, "tenantId": self._azure.get("tenantId") or self._stack_outputs.get("tenantId")}
        return EarlierIdentity(members, described, vault, place)

    def _below(self, urn: str) -> Iterator[StateResource]:
        for each in self._children.get(urn, ()):
            yield each
            yield from self._below(each["urn"])

    def _described(self, name: str) -> Mapping[str, Any]:
        """What the outputs of the last complete run say about the identity of that name."""
        for cluster, described in (self._stack_outputs.get("hostedClusters") or {}).items():
            for field, row in described["controlPlane"].items():
                if control_plane_identity_name(cluster, field) == name:
                    found: Mapping[str, Any] = row
                    return found
        return {}

    def _migrated(self, resource: StateResource) -> StateResource:
        """A resource of the state; what is not the plugin's stays as it is."""
        each = cast(StateResource, dict(resource))
        if _is_old_secret(each["urn"]):
            if each.get("delete"):
                return _without_value(each)
            return {**each, **self._secret(each)}
        if each["type"] == REGISTRATION:
            return self._registration(each)
        if not each["type"].startswith(OWN) or not self._is_old(each):
            return each
        each["inputs"], each["outputs"] = (_without_keys(found) for found in (inputs_of(each), outputs_of(each)))
        if not each.get("delete"):
            self._fill(each)
        for found in (each["inputs"], each["outputs"]):
            found[PROPERTY] = CURRENT
        _forget_secrets(each)
        return each

    def _fill(self, each: StateResource) -> None:
        """What this release's inputs and outputs have besides."""
        inputs, outputs = each["inputs"], each["outputs"]
        identity = self._identity(each)
        if each["type"] == SCHEDULE:
            decided = identity.schedule_inputs()
            for found in (inputs, outputs):
                found.update(decided)
                if identity.spare_was_never_used:
                    del found["b"]
            if identity.delivery is not None:
                inputs["delivered"] = identity.delivery
        elif each["type"] == CERTIFICATE:
            owner = identity.place | {"applicationId": identity.application_id}
            inputs |= owner
            outputs |= owner | {"keyId": identity.slot_of(each).key_id}
        elif each["type"] == GATE:
            inputs["thumbprint"] = outputs.get("thumbprint")
            moved = each.get("propertyDependencies") or {}
            if "certificatePem" in moved:
                moved = {**moved, "thumbprint": moved["certificatePem"]}
            each["propertyDependencies"] = {name: on for name, on in moved.items() if name not in _OF_GATE}

    def _registration(self, each: StateResource) -> StateResource:
        """Its id becomes an input: without it, the program's would replace the registration of what pods use."""
        registered = outputs_of(each).get("keyId")
        if each.get("delete") or registered is None or "keyId" in inputs_of(each):
            return each
        needed = dict(each.get("propertyDependencies") or {})
        return {
            **each,
            "inputs": {**inputs_of(each), "keyId": registered},
            "propertyDependencies": {**needed, "keyId": needed.get("value", [])},
        }

    def _secret(self, old: StateResource) -> StateResource:
        """azure-native's secret as the plugin's own."""
        identity = self._identity(old)
        inputs = identity.secret_inputs()
        inputs[PROPERTY] = CURRENT
        properties = outputs_of(old).get("properties") or {}
        uri = str(properties.get("secretUri", ""))
        written = {
            "version": str(properties.get("secretUriWithVersion", "")).rpartition("/")[2],
            "secretUri": uri,
            "deliveredAt": identity.written_at,
        }
        needed = (old.get("propertyDependencies") or {}).get("properties") or []
        return {
            "urn": _renamed(old["urn"]),
            "type": _SECRET,
            "custom": True,
            "provider": f"{self._provider['urn']}::{self._provider['id']}",
            "inputs": inputs,
            "outputs": {**inputs, **written},
            "propertyDependencies": {name: needed if name in _OF_CREDENTIAL else [] for name in inputs},
        }


def _renamed(urn: str) -> str:
    return urn.replace(f"${OLD_SECRET}::", f"${_SECRET}::")


def _has_key(resource: StateResource) -> bool:
    return resource["type"].startswith(OWN) or _is_old_secret(resource["urn"])


def _without_keys(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Without the private key, and without the certificate where it is an input: the thumbprint names it."""
    kept = {name: value for name, value in properties.items() if name != _KEY}
    if "authorityHost" in kept:
        kept.pop("certificatePem", None)
    return kept


def _without_value(secret: StateResource) -> StateResource:
    inputs = dict(inputs_of(secret))
    inputs["properties"] = {name: each for name, each in mapping(inputs.get("properties")).items() if name != "value"}
    return {**secret, "inputs": inputs}


def _forget_secrets(each: StateResource) -> None:
    kept = [name for name in each.get("additionalSecretOutputs") or () if name != _KEY]
    each.pop("additionalSecretOutputs", None)
    if kept:
        each["additionalSecretOutputs"] = kept


def _refer(each: StateResource, renamed: Mapping[str, str], lost: set[str]) -> None:
    """Let a resource refer to others by the URNs that they have now."""
    if each.get("dependencies"):
        each["dependencies"] = _references(each["dependencies"], renamed, lost)
    if each.get("propertyDependencies"):
        each["propertyDependencies"] = {
            name: _references(needed, renamed, lost) for name, needed in (each["propertyDependencies"] or {}).items()
        }
    if each.get("deletedWith") in renamed:
        each["deletedWith"] = renamed[each["deletedWith"]]


def _references(urns: list[str] | None, renamed: Mapping[str, str], lost: set[str]) -> list[str]:
    return [renamed.get(urn, urn) for urn in urns or () if urn not in lost]
