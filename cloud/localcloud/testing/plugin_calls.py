"""Calls to a plugin as the engine makes them."""

from __future__ import annotations

from plugin import Created, PropertyChange, Props, Provider, ReadResult, contains_unknown


def urn(token: str) -> str:
    """An URN of a resource of this type."""
    return f"urn:pulumi:test::project::{token}::name"


def checked(provider: Provider, token: str, inputs: Props, old: Props | None = None) -> Props:
    """The inputs after Check, which must not complain."""
    result = provider.resource(token).check(urn(token), old, inputs)
    assert not result.failures, result.failures
    return result.inputs


def create(provider: Provider, token: str, inputs: Props) -> tuple[Props, Created]:
    """Check, then create: the checked inputs and what came of them."""
    known = checked(provider, token, inputs)
    created = provider.resource(token).create(urn(token), known, preview=False)
    assert not contains_unknown(created.state)
    return known, created


def read(provider: Provider, token: str, inputs: Props, created: Created) -> ReadResult | None:
    """A refresh of what `create` returned."""
    return provider.resource(token).read(urn(token), created.id, inputs, created.state)


def refresh(provider: Provider, token: str, inputs: Props, created: Created) -> ReadResult:
    """A refresh of what must be there."""
    found = read(provider, token, inputs, created)
    assert found is not None
    return found


def import_by_id(provider: Provider, token: str, id: str) -> ReadResult:
    """An import of what must be there."""
    return refresh(provider, token, {}, Created(id, {}))


def changes(
    provider: Provider, token: str, inputs: Props, there: Created | ReadResult, new: Props
) -> dict[str, PropertyChange]:
    """What differs between a resource that is there and the new inputs."""
    return dict(provider.resource(token).diff(urn(token), there.id, inputs, there.state, new).changes)


def update(provider: Provider, token: str, inputs: Props, there: Created | ReadResult, new: Props) -> Props:
    """The state after an update."""
    return provider.resource(token).update(urn(token), there.id, inputs, there.state, new, preview=False)


def delete(provider: Provider, token: str, inputs: Props, created: Created) -> None:
    """Delete what `create` returned."""
    provider.resource(token).delete(urn(token), created.id, inputs, created.state)
