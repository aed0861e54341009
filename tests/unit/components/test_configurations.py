"""The configurations have every choice, and their objects are accepted in every shape."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from identity.catalogue import CONTROL_PLANE
from identity.settings.schema.model import Settings
from identity.settings.schema.schema_node import SchemaNode
from localcloud.testing.hosted_clusters import changed
from localcloud.testing.kubernetes import KINDS, definitions, schemas, version
from localcloud.testing.upstream_definitions import FEATURE_SETS, schema_of, upstream
from tests.broken_objects import BROKEN, BrokenObject
from tests.unit.components import world
from tests.unit.components.configurations import AZURE, CONFIGURATIONS
from tests.unit.components.registered_objects import Object, of_the_release, registered_objects
from tests.unit.components.shapes import shapes

# Keys that Azure's resources alone depend on, with what is below them.
_OF_AZURE: Final = ("vault", "keyVaultUser", "keyVaultUserScope", "managementCluster.create", "roles")
Choice = tuple[str, Any]


def _choices(node: SchemaNode, path: str) -> Iterator[Choice]:
    """Each key, with None, or with each of its words or booleans."""
    if node.model is None:
        yield from ((path, value) for value in node.choices or ((True, False) if node.annotation is bool else (None,)))
        return
    for field in node.model.model_fields.values():
        yield from _choices(
            SchemaNode.of(field.annotation, field.metadata), f"{path}.{field.alias}" if path else str(field.alias)
        )


def _values(configuration: Any, path: str) -> Iterator[Any]:
    key, _, below = path.partition(".")
    if isinstance(configuration, dict) and key in configuration:
        yield from _values(configuration[key], below) if below else (configuration[key],)


def _is_of_azure(path: str) -> bool:
    return any(path == prefix or path.startswith(f"{prefix}.") for prefix in _OF_AZURE)


@pytest.mark.parametrize(
    "choice",
    [choice for choice in _choices(SchemaNode(Settings), "") if _is_of_azure(choice[0])],
    ids=lambda choice: f"{choice[0]}-{choice[1]}",
)
def test_a_configuration_has_each_choice(choice: Choice) -> None:
    path, value = choice
    defaults = {"roles": "hypershift"}
    given = [
        found
        for changes in (*CONFIGURATIONS.values(), *AZURE.values())
        for found in _values({**defaults, **changes}, path)
    ]

    assert value in given if value is not None else given


def test_every_configuration_is_valid() -> None:
    for changes in (*CONFIGURATIONS.values(), *AZURE.values()):
        world.settings(**changes)


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> list[Object]:
    """What the first shape of each base has, which is every kind."""
    return registered_objects(tmp_path_factory.mktemp("shapes"), "-1")


@pytest.fixture(scope="module", params=FEATURE_SETS)
def real_components(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The built-in API's schemas, with the definitions of a real cluster."""
    known: dict[str, Any] = dict(schemas.components())
    for definition in definitions():
        names = definition["spec"]["names"]
        schema = schema_of(upstream(names["plural"], request.param), version(definition)["name"])
        metadata = {"metadata": {"$ref": f"{schemas.REFERENCE}V1ObjectMeta"}}
        known[names["kind"]] = {**schema, "properties": {**schema["properties"], **metadata}}
    return known


@pytest.fixture
def real(real_components: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in API checks by them."""
    monkeypatch.setattr(schemas, "components", lambda: real_components)


def refusals(document: Object) -> list[str]:
    kind = next(resource_kind for resource_kind in KINDS if resource_kind.kind == document["kind"])
    taken, findings = schemas.check(kind, document)
    causes = findings.causes or schemas.problems(kind, taken, None)
    unknown = [f'strict decoding error: unknown field "{name}"' for name in findings.unknown]
    return unknown + [f"{cause.field}: {cause.message}" for cause in causes]


def test_every_choice_is_in_a_shape_but_those_that_the_api_refuses() -> None:
    _, missing = shapes()

    assert {str(choice) for choice in missing} == {
        f"hostedClusters.0.identities.{row.field}.enabled: False"
        for row in CONTROL_PLANE
        if not row.optional and row.setting is None
    }


def test_every_kind_that_the_stack_writes_is_there(registered: list[Object]) -> None:
    assert {resource["kind"] for resource in registered} == {broken.kind for broken in BROKEN}


def refused(objects: list[Object]) -> dict[str, list[str]]:
    return {
        f"{resource['kind']} {resource['metadata']['name']}": found
        for resource in objects
        if (found := refusals(of_the_release(resource)))
    }


@pytest.mark.usefixtures("real")
def test_an_object_of_a_base_is_taken(registered: list[Object]) -> None:
    assert refused(registered) == {}


@pytest.mark.slow
@pytest.mark.usefixtures("real")
def test_every_object_is_taken(tmp_path: Path) -> None:
    assert refused(registered_objects(tmp_path)) == {}


@pytest.mark.usefixtures("real")
@pytest.mark.parametrize(
    "broken", [broken for broken in BROKEN if not broken.server_alone], ids=lambda broken: broken.name
)
def test_an_object_that_is_broken_is_refused(registered: list[Object], broken: BrokenObject) -> None:
    whole = next(resource for resource in registered if resource["kind"] == broken.kind)

    assert broken.refusal in "; ".join(refusals(changed(whole, broken.path, broken.value)))
