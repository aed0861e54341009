"""What kube-apiserver alone can do: these tests run with `make e2e`, on the stack that all of its tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import httpx
import pytest

from localcloud.testing.running import Binaries
from tests.harness import LocalStack


@pytest.fixture(autouse=True, scope="session")
def is_asked_for() -> None:
    """`make e2e` starts local clouds on kube-apiserver."""
    assert os.environ.get("LOCALCLOUD_CLUSTER") == "apiserver", "run `make e2e`, with ARGS=<path> for a part"


@pytest.fixture(scope="session")
def deployer(stack: LocalStack) -> Iterator[httpx.Client]:
    with stack.kubernetes("deployer") as http:
        yield http


@pytest.fixture(scope="session")
def kubelet(stack: LocalStack) -> Iterator[httpx.Client]:
    with stack.kubernetes("kubelet") as http:
        yield http


@pytest.fixture(scope="session")
def administrator(stack: LocalStack) -> Iterator[httpx.Client]:
    with stack.kubernetes("administrator") as http:
        yield http


@pytest.fixture(scope="session")
def kubectl() -> str:
    """Built with kube-apiserver."""
    return Binaries.find().path("kubectl")
