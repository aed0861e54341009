"""`StackOwnerResource`: an id that is made once, and that nothing changes."""

from __future__ import annotations

import uuid

from plugin import UNKNOWN, Props
from provider.namespace_guard import StackOwnerResource

URN = "urn:pulumi:dev::idstack::idstack:index:StackOwner::owner"

resource = StackOwnerResource()


def inputs(old: Props | None = None) -> Props:
    checked = resource.check(URN, old, {})
    assert not checked.failures
    return checked.inputs


def test_each_stack_gets_an_id_of_its_own() -> None:
    assert resource.create(URN, inputs(), preview=True).state["ownerId"] is UNKNOWN
    made = [resource.create(URN, inputs(), preview=False) for _ in range(2)]

    assert [created.id for created in made] == [created.state["ownerId"] for created in made]
    assert len({uuid.UUID(created.id) for created in made}) == 2


def test_it_stays_whatever_a_later_release_asks() -> None:
    first = resource.create(URN, inputs(), preview=False)

    read = resource.read(URN, first.id, inputs(), first.state)
    assert read is not None
    assert (read.id, read.state) == (first.id, first.state)
    assert resource.diff(URN, first.id, inputs(), first.state, inputs(inputs())).changes == {}
    for preview in (True, False):
        updated = resource.update(URN, first.id, inputs(), first.state, inputs() | {"note": "x"}, preview=preview)
        assert updated == first.state | {"note": "x"}
