"""From Pulumi's raw configuration to `Settings`, or to the report of everything that is wrong with it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeVar, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from identity import naming
from identity.catalogue import CONTROL_PLANE
from identity.clouds import CLOUDS, DEFAULT_CLOUD, LOCAL_CLOUD, Cloud, LocalEnvironment, local_cloud
from identity.naming import InfrastructureNames
from identity.settings.rules.infrastructure import LONGEST_STEM
from identity.settings.rules.placeholders import refuse_placeholders
from identity.settings.rules.stack import validate_settings
from identity.settings.schema.base import RefusedValueError, unless_refused
from identity.settings.schema.hosted_clusters import DEFAULT_ENCODING
from identity.settings.schema.kms import key_vault_type_of
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import (
    CLI,
    NAMESPACE,
    ConfigurationError,
    Place,
    Problem,
    enumerate_words,
    kind_of,
    path_of,
    value_at,
)
from identity.settings.schema.schema_node import CREDENTIAL, REFUSED, ReportedPlace, SchemaNode
from identity.similar import similar


def fill_in(raw: dict[str, Any], local: LocalEnvironment | None) -> Mapping[Place, tuple[Place, ...]]:
    """Complete `raw` in place. Returns the places that it fills in, each with the places that its value follows from.

    If one of them is missing or has the wrong type, the value is missing as well: only the source is reported.
    """
    raw["cloud"] = _cloud(raw.get("cloud", DEFAULT_CLOUD), local)
    defaults = _Defaults(raw)
    clusters = raw.get("hostedClusters")
    for index, cluster in enumerate(clusters if isinstance(clusters, list) else ()):
        if isinstance(cluster, dict):
            defaults.fill_in_cluster(cluster, ("hostedClusters", index))
    return defaults.filled


def _cloud(name: object, local: LocalEnvironment | None) -> object:
    """The cloud of that name; any other value stays and is refused later."""
    if name == LOCAL_CLOUD and local:
        return local_cloud(local)
    return CLOUDS.get(name, name) if isinstance(name, str) else name


@dataclass(frozen=True)
class _Defaults:
    raw: Mapping[str, Any]
    filled: dict[Place, tuple[Place, ...]] = field(default_factory=dict)

    def _set(self, mapping: dict[str, Any], place: Place, key: str, value: object, *sources: Place) -> None:
        """Set a key of the mapping at `place` to a value other than None, unless the configuration has it."""
        if key not in mapping:
            self.filled[*place, key] = sources
            if value is not None:
                mapping[key] = value

    def fill_in_cluster(self, cluster: dict[str, Any], place: Place) -> None:
        raw, name = self.raw, cluster.get("name")
        self._set(cluster, place, "infraID", naming.dashed(name) if isinstance(name, str) else None, (*place, "name"))
        self._set(cluster, place, "location", raw.get("location"), ("location",))
        if cluster.get("infrastructure") == "create":
            self._fill_in_infrastructure(cluster, place)
        if cluster.get("issuer") == "create":
            issuer, cloud = cluster.get("issuerName"), raw["cloud"]
            url: object = None
            if isinstance(issuer, str) and isinstance(cloud, Cloud):
                url = naming.issuer_url(issuer, cloud.storage_suffix)
            self._set(cluster, place, "issuerURL", url, (*place, "issuerName"))
        kms, at = cluster.get("kms"), (*place, "kms")
        if isinstance(kms, dict):
            group = raw.get("resourceGroup")
            self._set(kms, at, "keyVaultType", key_vault_type_of(kms.get("activeKey")), (*at, "activeKey"))
            self._set(kms, at, "keyVaultResourceGroup", group, ("resourceGroup",))
            group = kms.get("keyVaultResourceGroup")
            self._set(kms, at, "backupKeyVaultResourceGroup", group, (*at, "keyVaultResourceGroup"))
        self._fill_in_identities(cluster, place)

    def _fill_in_infrastructure(self, cluster: dict[str, Any], place: Place) -> None:
        """Fill in the names of what the stack makes; `infraID` is there already."""
        name, infra_id, subscription = cluster.get("name"), cluster.get("infraID"), self.raw.get("subscriptionId")
        names: InfrastructureNames | None = None
        if isinstance(name, str) and isinstance(infra_id, str) and isinstance(subscription, str):
            names = InfrastructureNames(subscription, name, infra_id)
            # Refused by a rule of its own, with the reason.
            names = names if len(names.stem) <= LONGEST_STEM else None
        sources: tuple[Place, ...] = ((*place, "name"), (*place, "infraID"), ("subscriptionId",))
        cluster.setdefault("network", {})
        for key, value in (
            ("resourceGroup", names and names.managed_group),
            ("vnetID", names and names.network_id),
            ("subnetID", names and names.subnet_id),
            ("securityGroupID", names and names.security_group_id),
        ):
            self._set(cluster, place, key, value, *sources)
        dns, at = cluster.get("dns"), (*place, "dns")
        self._set(cluster, place, "dnsZoneResourceGroup", _group(dns), *sources, (*at, "publicZoneID"))
        if isinstance(dns, dict):
            domain = dns.get("baseDomain")
            zone = names.private_zone_id(domain) if names and isinstance(domain, str) else None
            self._set(dns, at, "privateZoneID", zone, *sources, (*at, "baseDomain"))

    def _fill_in_identities(self, cluster: dict[str, Any], place: Place) -> None:
        name, encoding = cluster.get("name"), cluster.get("objectEncoding", DEFAULT_ENCODING)
        identities = cluster.setdefault("identities", {})
        if not isinstance(identities, dict):
            return
        has_credentials = cluster.get("authentication") != "workload-identities"
        for row in CONTROL_PLANE:
            if not has_credentials and row.field not in identities:
                continue  # a configured one is refused
            identity, at = identities.setdefault(row.field, {}), (*place, "identities", row.field)
            if not isinstance(identity, dict):
                continue
            is_on = row.enabled_by_default and (row.setting is None or cluster.get(row.setting) is not None)
            self._set(identity, at, "enabled", is_on, (*place, row.setting or "identities"))
            self._set(identity, at, "objectEncoding", encoding, (*place, "objectEncoding"))
            credential = identity.get("credential")
            if isinstance(credential, dict) and "secretName" in credential:
                # A secret that exists already is mounted as it is, not copied.
                self._set(identity, at, "secretName", credential["secretName"], (*at, "credential", "secretName"))
            secret = naming.credentials_secret_name(row.secret_stem, name) if isinstance(name, str) else None
            self._set(identity, at, "secretName", secret, (*place, "name"))


def _group(dns: object) -> object:
    """Resource group of the public zone; None without one, which is refused at its own place."""
    try:
        return naming.parse_arm_id(str(dns["publicZoneID"])).resource_group if isinstance(dns, dict) else None
    except (KeyError, ValueError):
        return None


_Model = TypeVar("_Model", bound=BaseModel)
_SETTINGS: Final = SchemaNode(Settings)
_BOOLEANS: Final = {"true": True, "false": False}
# What a stack file leaves out arrives as the empty default that Pulumi.yaml declares for it.
_LEFT_OUT: Final[tuple[Any, ...]] = (None, "", {}, [])


def load_settings(
    config: Mapping[str, str],
    *,
    secret_keys: Collection[str],
    local: LocalEnvironment | None,
    written: Mapping[str, object] | None = None,
) -> Settings:
    """The settings in Pulumi's configuration.

    Args:
        config: the project's keys without their namespace; values as Pulumi hands them over, structures as JSON.
        secret_keys: the keys whose value is, or holds, a secret: nothing out of them appears in the report.
        local: the record of the local cloud, if there is one on this machine.
        written: the values as YAML reads them in the stack's file, None without the file. It distinguishes a boolean or
            a number from a string in quotes; without it `true` and `false` count as booleans. Placeholders of examples
            are refused only in a file.

    Raises:
        ConfigurationError: with every problem of the configuration.
    """
    root = ReportedPlace(secret_keys)
    raw = _parse({**dict.fromkeys((key for key in written or () if ":" in key), ""), **config}, written, root)
    refused = {problem.place for problem in root.problems}
    filled = fill_in(raw, local)
    refused |= {place for place in filled if value_at(raw, place) is None}
    try:
        settings = Settings.model_validate(raw, context=raw["cloud"])
    except ValidationError as error:
        errors = [each for each in _reported_once(error.errors(include_url=False)) if each["loc"] not in refused]
        _describe(errors, filled, refused, root)
        refused |= {each["loc"] for each in errors}
    if refused:
        settings = _valid_part(Settings, raw, refused, (), raw["cloud"])
    validate_settings(settings, local, root)
    if written is not None:
        refuse_placeholders(raw, filled, _SETTINGS, root)
    if root.problems:
        raise ConfigurationError(sorted(root.problems, key=_in_order))
    return settings


def _in_order(problem: Problem) -> tuple[int, int]:
    """Unknown keys first, then the settings in the order of `model.py`; hosted clusters one after the other."""
    key, *rest = problem.place
    position = _SETTINGS.keys.index(str(key)) if key in _SETTINGS.keys else -1
    return position, next((step for step in rest if isinstance(step, int)), -1)


def _parse(config: Mapping[str, str], written: Mapping[str, object] | None, root: ReportedPlace) -> dict[str, Any]:
    """Values by key with parsed structures, without empty and unknown keys, and without what cannot be parsed."""
    raw: dict[str, Any] = {}
    for key, text in sorted(config.items()):
        node = _SETTINGS.step(key)
        if node is None:
            _refuse_unknown_key(root / key)
        elif node.is_structure:
            raw[key] = _parse_structure(text, node, root / key)
        else:
            raw[key] = _plain(key, text, written, node)
    return {key: value for key, value in raw.items() if value not in _LEFT_OUT}


def _plain(key: str, text: str, written: Mapping[str, object] | None, node: SchemaNode) -> object:
    """A scalar. Instead of a string, a boolean or number of YAML stays one, and is refused."""
    if node.annotation is bool or written is None:
        return _BOOLEANS.get(text, text)
    value = written.get(key)
    return value if isinstance(value, (bool, int, float)) else text


def _parse_structure(text: str, node: SchemaNode, at: ReportedPlace) -> Any:
    """The mapping or list that Pulumi passes as JSON; None for a refused text."""
    value: object
    try:
        return json.loads(text, object_pairs_hook=_mapping) if text else None
    except _BrokenNameError as error:
        value, reason = {}, str(error)
    except (ValueError, RecursionError):  # RecursionError: thousands of brackets
        value, reason = text, ""
    at.refuse_value(value, rule=node.rule, accepted=node.accepted, fix=_fix(at, node, value), reason=reason)
    return None


class _BrokenNameError(ValueError):
    """A key that no validator can name in its errors."""


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; raises `_BrokenNameError` for half of a character, which JSON can spell (\\ud800), in a key."""
    for name, _ in pairs:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise _BrokenNameError("one of its keys holds half of a character") from None
    return dict(pairs)


def _refuses_name(error: ErrorDetails) -> bool:
    """Whether a name in a mapping is refused, and not a value, or a key that is itself called `[key]`."""
    place = error["loc"]
    if len(place) < 2 or place[-1] != "[key]" or error["type"] == "extra_forbidden":
        return False
    holder = _SETTINGS.at(place[:-2])
    return holder is not None and holder.is_mapping


def _reported_once(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Without the errors below a name that is refused itself."""
    names = {error["loc"][:-1] for error in errors if _refuses_name(error)}
    return [
        error
        for error in errors
        if _refuses_name(error) or not any(error["loc"][: len(name)] == name for name in names)
    ]


def _describe(
    errors: list[ErrorDetails], filled: Mapping[Place, tuple[Place, ...]], before: Set[Place], root: ReportedPlace
) -> None:
    refused = before | {error["loc"] for error in errors}
    for error in errors:
        place = error["loc"]
        sources = (source for end in range(1, len(place) + 1) for source in filled.get(place[:end], ()))
        if not refused.isdisjoint(sources):
            continue
        node, at = _SETTINGS.at(place), root.at(place)
        if _refuses_name(error):
            _refuse_name(root.at(place[:-1]))
        elif node is None:
            _refuse_unknown_key(at)
        else:
            is_missing = error["type"] == "missing"
            value = None if is_missing else error["input"]
            reason = error["ctx"]["reason"] if error["type"] in {REFUSED, CREDENTIAL} else ""
            at.refuse_value(
                value,
                rule="missing" if is_missing else node.rule,
                accepted=node.accepted,
                fix=_fix(at, node, value),
                reason=reason,
            )


def _fix(at: ReportedPlace, node: SchemaNode, value: object) -> str:
    """The command that sets a valid value there, with a suggestion if there is one."""
    if node.is_structure and not (node.spec and node.spec.hint):
        return f"write it as YAML at {at} in the stack file"
    if node.spec and _is_accepted_in_quotes(node, value) and not at.hides(value):
        # YAML has turned `1.30` and `yes` into 1.3 and true.
        command = at.to_set(str(value) if type(value) is int else node.spec.blank, options="--type string")
        return f"{command}, or write it in quotes in the stack file: without them it is {kind_of(value)}"
    guess = None
    if not at.hides(value):
        guess = node.spec.guessed(value) if node.spec else similar(str(value), node.choices)
    hint = f"; {node.spec.hint}" if node.spec and node.spec.hint and not guess else ""
    return at.to_set(guess or node.blank) + hint


def _is_accepted_in_quotes(node: SchemaNode, value: object) -> bool:
    if node.annotation is not str or not node.spec or not isinstance(value, (bool, int, float)):
        return False
    try:
        node.spec.check(json.dumps(value))
    except ValueError:
        return False
    return True


def _refuse_name(at: ReportedPlace) -> None:
    *parents, name = at.place
    mapping = _SETTINGS.at(tuple(parents))
    assert mapping is not None, "pydantic reported a place in it"
    spec = mapping.key_spec
    guess = None if at.hides(name) else spec.guessed(name)
    fix = f"rename it to {guess}" if guess else f"{at.to_remove()}, or rename it"
    at.refuse_value(name, rule=spec.rule, accepted=spec.accepted, fix=fix)


def _refuse_unknown_key(at: ReportedPlace) -> None:
    *parents, key = at.place
    holder = _SETTINGS.at(tuple(parents))
    known = holder.keys if holder else ()
    close = similar(str(key), known)
    head = re.split(r"[.\[]", str(key))[0]
    if not parents and head != key and head in known:
        fix = f"{at.to_remove()}, then `{CLI} config set --path {shlex.quote(str(key))} <value>`: a path needs --path"
    elif ":" in str(key):
        fix = f"rename it to {NAMESPACE}:{str(key).partition(':')[2]}"
    elif close:
        fix = f"rename it to {path_of((*parents, close))}"
    else:
        fix = at.to_remove()
    accepted = f"the keys {enumerate_words(known)}"
    at.problems.append(
        Problem(place=at.place, rule="unknown-key", found="a key that nothing reads", accepted=accepted, fix=fix)
    )


def _valid_part(
    model: type[_Model], raw: Mapping[str, Any], refused: Set[Place], place: Place, cloud: object
) -> _Model:
    """The model at `place` without the fields in which something was refused."""
    fields = {name: (str(info.alias), info) for name, info in model.model_fields.items()}
    partial = _without_fields(model, {name for name, (key, _) in fields.items() if key in raw})
    for name, (key, info) in fields.items():
        with unless_refused():
            if key in raw:
                value = _valid_value(info.rebuild_annotation(), raw[key], refused, (*place, key), cloud)
                vars(partial)[name] = value
            elif (*place, key) not in refused:
                vars(partial)[name] = info.get_default(call_default_factory=True)
    return partial


def _without_fields(model: type[_Model], given: set[str] | None = None) -> _Model:
    partial = model.model_construct(given)
    vars(partial).clear()
    return partial


# To build one takes longer than to validate a value.
_adapter: Final[Callable[[Any], TypeAdapter[Any]]] = cache(TypeAdapter)


def _valid_value(annotation: Any, value: Any, refused: Set[Place], place: Place, cloud: object) -> Any:
    """What is valid of the value at `place`; raises RefusedValueError if it is useless without the rest.

    A model in a list or a mapping stays, if need be without any field: rules count the others by their places.
    """
    if not any(each[: len(place)] == place for each in refused):
        return _adapter(annotation).validate_python(value, context=cloud)
    node = SchemaNode.of(annotation)
    if place in refused:
        raise RefusedValueError
    if node.model and isinstance(value, Mapping):
        return _valid_part(node.model, value, refused, place, cloud)

    def entry(key: str | int, item: Any) -> Any:
        inner = get_args(node.annotation)[1 if node.is_mapping else 0]
        try:
            return _valid_value(inner, item, refused, (*place, key), cloud)
        except RefusedValueError:
            if (model := SchemaNode.of(inner).model) is None:
                raise
            return _without_fields(model)

    if isinstance(value, Mapping):
        return {key: entry(key, item) for key, item in value.items() if (*place, key, "[key]") not in refused}
    return tuple(entry(index, item) for index, item in enumerate(value))
