"""Stacks that tests may change behind their backs: one for several files, others for each file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.rehearsals import Rehearsals, rehearsals
from tests.engine.rotations import Rotating, rotating_stack
from tests.engine.small_stack import small_stack
from tests.groups import shared
from tests.harness import LocalStack


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack with every type of resource, but few of each, brought up once; each test repairs what it has changed."""
    with shared(small_stack(tmp_path_factory.mktemp("small"), "stack"), "small") as stack:
        stack.up()
        yield stack


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack of the same kind that is the file's own, brought up."""
    with small_stack(tmp_path_factory.mktemp("own"), "stack") as stack:
        stack.up()
        yield stack


@pytest.fixture(scope="module")
def rotating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rotating]:
    """The file's own stack whose certificates a clock renews."""
    with rotating_stack(tmp_path_factory.mktemp("rotating")) as rotating:
        yield rotating


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsals]:
    """The file's own repository to rehearse in."""
    with rehearsals(tmp_path_factory.mktemp("rehearsals")) as found:
        yield found
