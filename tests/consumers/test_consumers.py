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


@dataclass(frozen=True, kw_only=True)
class Story:
    """What each consumer that is there was refused ("" for nothing), step by step."""

    first: Mapping[type[Consumer], str]
    renewed: Mapping[type[Consumer], str]
    started_anew: Mapping[type[Consumer], str]
    renewed_again: Mapping[type[Consumer], str]
    refused_sign_ins: list[str]
    revoked: Mapping[type[Consumer], str]
    started_after: Mapping[type[Consumer], str]
    production_roles: Mapping[type[Consumer], str]


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

        first = work()
        stack.idstack("rotate")
        renewed, started_anew = work(), start_anew()
        stack.idstack("rotate", "--force")
        renewed_again = work()
        refused_sign_ins = _refused_sign_ins(stack)
        start_anew()
        stack.idstack("rotate", "--revoke")
        revoked, started_after = work(), start_anew()
        with stack.configured(roles="builtin"):
            stack.up()
            production_roles = work()
        yield Story(
            first=first,
            renewed=renewed,
            started_anew=started_anew,
            renewed_again=renewed_again,
            refused_sign_ins=refused_sign_ins,
            revoked=revoked,
            started_after=started_after,
            production_roles=production_roles,
        )


def _refused_sign_ins(stack: LocalStack) -> list[str]:
    log = read_requests(StateDirectory(stack.state).requests_file)
    return [
        f"{request.time} {request.client}: {request.status}"
        for request in log
        if request.service == "entra" and "azsdk-go" in request.client and request.status >= 400
    ]


def _of(consumer: type[Consumer], step: Mapping[type[Consumer], str]) -> str:
    if reason := consumer.missing():
        pytest.skip(reason)
    return step[consumer]


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_consumer_signs_in_reads_and_writes(story: Story, consumer: type[Consumer]) -> None:
    assert _of(consumer, story.first) == ""


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_with_productions_roles_it_does_the_same(story: Story, consumer: type[Consumer]) -> None:
    assert _of(consumer, story.production_roles) == ""


@pytest.mark.parametrize("consumer", _RENEWED)
def test_two_renewals_cost_it_no_call(story: Story, consumer: type[Consumer]) -> None:
    steps = (story.renewed, story.started_anew, story.renewed_again)

    assert [_of(consumer, step) for step in steps] == [""] * len(steps)


def test_no_sign_in_of_a_consumer_fails_meanwhile(story: Story) -> None:
    assert story.refused_sign_ins == []


@pytest.mark.parametrize("consumer", _RENEWED)
def test_with_a_withdrawn_certificate_it_is_refused_until_it_starts_anew(
    story: Story, consumer: type[Consumer]
) -> None:
    assert "AADSTS700027" in _of(consumer, story.revoked)
    assert story.started_after[consumer] == ""
