"""Whether the SecretProviderClass exists, and names the identity's secret and the key-vault-user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from identity import yaml_text
from ops.doctor.model.check import Check, Fault, Stage, of_identity
from ops.world.expected import Identity
from ops.world.seen import NotReadError, Part, StackWorld, entry, known


def _find(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    state = known(world.state)
    plane, name = entry(world.control_planes, identity.cluster), identity.secret_provider_class
    classes = known(plane.classes)
    provider_class = classes.get(name)
    fix = world.repair
    if state.cluster_side == "hypershift":
        fix = f"HyperShift writes it from the HostedCluster: compare that with {world.command('export', 'hypershift')}"
        if provider_class is None and (not classes or plane.hosted_cluster is None):
            lacking = f"{name}: HyperShift has not created it" if classes else "at all: HyperShift has not created them"
            raise NotReadError(f"{identity.namespace} has no SecretProviderClass {lacking} yet")
    if provider_class is None:
        yield Fault(evidence=f"there is no SecretProviderClass {name} in {identity.namespace}", fix=fix)
        return
    expected = {
        "usePodIdentity": "false",
        "useVMManagedIdentity": "true",
        "userAssignedIdentityID": state.key_vault_user,
        "keyvaultName": state.vault_name,
        "tenantId": state.tenant_id,
    }
    differences = _differences(provider_class.parameters, expected)
    if provider_class.provider != "azure":
        differences.append(f"its provider is {provider_class.provider!r}, not 'azure'")
    differences += _in_objects(provider_class.parameters.get("objects", ""), identity)
    if differences:
        yield Fault(evidence=f"of {name} in {identity.namespace}, {'; '.join(differences)}", fix=fix)


def _in_objects(text: str, identity: Identity) -> list[str]:
    try:
        objects = [yaml_text.load(text_) for text_ in yaml_text.load(text)["array"]]
    except (yaml.YAMLError, TypeError, KeyError):
        return ["`objects` is not what the driver reads: YAML with a list `array` of YAML texts"]
    of_secret: Any = next((item for item in objects if _name(item) == identity.secret), None)
    if of_secret is None:
        return [f"objectName is {', '.join(map(repr, map(_name, objects)))}, not {identity.secret!r}"]
    expected = {"objectEncoding": identity.object_encoding, "objectType": "secret"}
    return _differences(of_secret, expected)


def _differences(actual: Mapping[str, Any], expected: Mapping[str, str]) -> list[str]:
    return [
        f"{key} is {actual.get(key)!r}, not {value!r}" for key, value in expected.items() if actual.get(key) != value
    ]


def _name(item: object) -> object:
    return item.get("objectName") if isinstance(item, Mapping) else item


CHECKS: Final[tuple[Check, ...]] = (of_identity(Stage.CLASS, "class", (Part.CONTROL_PLANES,), _find),)
