"""Every program that is there signs in with what its pod has, does its first work, and goes on through renewals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import pytest

from localcloud.testing.faults import HeldFaults
from localcloud.testing.running import StateDirectory, read_requests
from tests.consumers.clients import (
    CloudProviderClient,
    ClusterApi,
    DiskClient,
    FileClient,
    ImageRegistry,
    Ingress,
    Network,
)
from tests.consumers.consumer import Consumer
from tests.consumers.drivers import DiskDriver, FileDriver, make_machine
from tests.consumers.programs import CloudControllerManager, Kms
from tests.engine.held_faults import dialled
from tests.harness import LocalStack, running_stack

CONSUMERS: Final[tuple[type[Consumer], ...]] = (
    *(CloudControllerManager, Kms, Ingress, ImageRegistry, DiskDriver, FileDriver, Network, ClusterApi),
    *(CloudProviderClient, DiskClient, FileClient),
)
# The image registry's certificate is Azure's: its source is a managed identity.
_RENEWED: Final = tuple(consumer for consumer in CONSUMERS if consumer is not ImageRegistry)
# So short that nothing goes on with a token of the step before.
_SHORT: Final = HeldFaults(token_lifetime=(3, 3))


@dataclass(frozen=True)
class Story:
    """What each consumer that is there was refused ("" for nothing), step by step."""

    steps: Mapping[str, Mapping[type[Consumer], str]]
    refused_sign_ins: list[str]

    def of(self, consumer: type[Consumer], *steps: str) -> list[str]:
        """What a consumer was refused in these steps; skips the test if the program is missing."""
        if reason := consumer.missing():
            pytest.skip(reason)
        return [self.steps[step][consumer] for step in steps]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    root = tmp_path_factory.mktemp("consumers")
    (root / "stack").mkdir()
    with running_stack(root / "stack") as stack, ExitStack() as running:
        stack.up()
        make_machine(stack)
        found = [consumer for consumer in CONSUMERS if not consumer.missing()]
        all_of_them = [running.enter_context(consumer(stack, root / consumer.__name__)) for consumer in found]

        def work() -> dict[type[Consumer], str]:
            with dialled(stack, _SHORT):
                return {type(consumer): consumer.work() for consumer in all_of_them}

        def start_anew() -> dict[type[Consumer], str]:
            for consumer in all_of_them:
                consumer.stop()
                consumer.start()
            return work()

        steps = {"first": work()}
        stack.idstack("rotate")
        steps |= {"renewed": work(), "started anew": start_anew()}
        stack.idstack("rotate", "--force")
        steps["renewed again"] = work()
        refused_sign_ins = _refused_sign_ins(stack)
        start_anew()
        stack.idstack("rotate", "--revoke")
        steps |= {"revoked": work(), "started after": start_anew()}
        with stack.configured(roles="builtin"):
            stack.up()
            steps["production's roles"] = work()
        yield Story(steps, refused_sign_ins)


def _refused_sign_ins(stack: LocalStack) -> list[str]:
    log = read_requests(StateDirectory(stack.state).requests_file)
    return [
        f"{request.time} {request.client}: {request.status}"
        for request in log
        if request.service == "entra" and "azsdk-go" in request.client and request.status >= 400
    ]


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_consumer_signs_in_reads_and_writes_with_productions_roles_as_well(
    story: Story, consumer: type[Consumer]
) -> None:
    assert story.of(consumer, "first", "production's roles") == ["", ""]


@pytest.mark.parametrize("consumer", _RENEWED)
def test_two_renewals_cost_it_no_call(story: Story, consumer: type[Consumer]) -> None:
    assert story.of(consumer, "renewed", "started anew", "renewed again") == ["", "", ""]


def test_no_sign_in_of_a_consumer_fails_meanwhile(story: Story) -> None:
    assert story.refused_sign_ins == []


@pytest.mark.parametrize("consumer", _RENEWED)
def test_with_a_withdrawn_certificate_it_is_refused_until_it_starts_anew(
    story: Story, consumer: type[Consumer]
) -> None:
    [revoked, started_after] = story.of(consumer, "revoked", "started after")

    assert "AADSTS700027" in revoked
    assert started_after == ""
