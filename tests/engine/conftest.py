"""A stack that tests may change behind its back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.small_stack import small_stack
from tests.groups import shared
from tests.harness import LocalStack


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack with every type of resource, but few of each, brought up once; each test repairs what it has changed."""
    with shared(small_stack(tmp_path_factory.mktemp("small"), "stack"), "small") as stack:
        stack.up()
        yield stack
