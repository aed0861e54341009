"""Calls to a plugin as the engine makes them."""

from __future__ import annotations

from plugin import Created, Props, Provider, ReadResult, contains_unknown


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


def delete(provider: Provider, token: str, inputs: Props, created: Created) -> None:
    """Delete what `create` returned."""
    provider.resource(token).delete(urn(token), created.id, inputs, created.state)
