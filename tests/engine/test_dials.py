"""The program under the dials of the local cloud: it ends well, or names the cause, and the next run goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from localcloud.testing.faults import Disk, HeldAnswer, HeldDelivery, HeldFaults
from tests.engine.clients import Client, bare_sign_in, secrets_of
from tests.engine.held_faults import dialled
from tests.engine.rotations import SETTLED
from tests.engine.small_stack import documents, small_stack
from tests.harness import LocalStack

pytestmark = pytest.mark.nightly

_SECRET: Final = "cloud-provider-hc1-json"
_WRONG_CLOCK: Final = "left out, because its renewal fails: no certificate was issued, as this machine's clock is wrong"
# What any client of Azure gets through by itself.
_PASSES: Final = HeldFaults(
    answers=(
        HeldAnswer("arm", status=429, code="TooManyRequests", retry_after=1, probability=0.05, seed=1),
        HeldAnswer("arm", operation="PUT secret", status=503, retry_after=1, count=2),
        HeldAnswer("graph", status=429, code="TooManyRequests", retry_after=1, probability=0.05, seed=2),
        HeldAnswer("graph", operation="PATCH application", status=502, retry_after=1, count=1),
        HeldAnswer("keyvault", status=500, code="InternalServerError", count=2),
        HeldAnswer("keyvault", status=429, code="TooManyRequests", skip=4, count=1),
        HeldAnswer("entra", operation="POST token", status=503, code="temporarily_unavailable", skip=6, count=1),
    ),
    deliveries=(
        HeldDelivery("arm", latency=0.2, bytes_per_second=20_000, probability=0.3, seed=3),
        HeldDelivery("entra", latency=0.3, probability=0.3, seed=4),
    ),
    token_lifetime=(3, 3),
    replica_delays=(0.0, 0.0, 2.0),
)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Up since a run under everything that passes."""
    with (
        pytest.MonkeyPatch.context() as patch,
        small_stack(tmp_path_factory.mktemp("dials"), "hypershift") as made,
        # Its clients sign in with each certificate at once.
        made.configured(credentials={"propagation": SETTLED}),
    ):
        patch.setenv("REQUESTS_CA_BUNDLE", made.environment.ca_file)
        with dialled(made, _PASSES):
            done = made.idstack("up", check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        yield made


@contextmanager
def signing_in(stack: LocalStack) -> Iterator[Client]:
    """A client that takes its credential out of the vault for each sign-in, until the end of the block."""
    with (
        secrets_of(stack) as vault,
        Client(lambda: bare_sign_in(json.loads(vault.get_secret(_SECRET).value or ""))) as client,
    ):
        client.await_sign_ins(1)
        yield client
        client.await_sign_ins(1)


def applications(stack: LocalStack) -> set[str]:
    """Ids of all applications, of which a run that is repeated may make no second one."""
    return {document["appId"] for document in documents(stack, "entra-application")}


def causes(stack: LocalStack) -> dict[str, tuple[HeldFaults, tuple[str, ...]]]:
    """Dials that end a run, by name: what is held, and the words of the cause that the run has to give."""
    deployer, vault = stack.environment.deployer_client_id, stack.outputs["keyVaultName"]
    disabled = HeldAnswer(
        "entra",
        operation="POST token",
        identity=deployer,
        status=401,
        code="unauthorized_client",
        message="AADSTS7000112: Application is disabled.",
    )
    half = HeldDelivery("arm", operation="PUT secret", cut=0.5)
    return {
        "read-only vault": (
            HeldFaults(read_only_vaults=(vault,)),
            ("Forbidden", f"The vault {vault} is in read-only mode"),
        ),
        "half-sent answers": (
            HeldFaults(deliveries=(half,)),
            ("PUT https://", f"/secrets/{_SECRET}: the answer was cut short"),
        ),
        "clock behind": (HeldFaults(date_shift={"arm": 90_000.0}), (_WRONG_CLOCK,)),
        "clock ahead": (HeldFaults(date_shift={"arm": -90_000.0}), (_WRONG_CLOCK,)),
        "expired TLS": (HeldFaults(expired_tls=("arm",)), ("GET https://", "certificate has expired")),
        "disabled deployer": (HeldFaults(answers=(disabled,)), ("AADSTS7000112", deployer)),
        "full disk": (HeldFaults(disk=Disk.FULL), ("state.sqlite cannot be written (No space left on device)",)),
        "read-only disk": (
            HeldFaults(disk=Disk.READ_ONLY),
            ("state.sqlite cannot be written (Read-only file system)",),
        ),
    }


def test_a_first_run_gets_through_what_passes(stack: LocalStack) -> None:
    assert stack.preview() == {}
    with signing_in(stack) as client:
        pass
    assert client.failures == []


def test_what_ends_a_run_is_named_and_costs_nothing(stack: LocalStack) -> None:
    before, thumbprint = applications(stack), stack.control_plane["cloudProvider"]["thumbprint"]

    for name, (faults, words) in causes(stack).items():
        with signing_in(stack) as client, dialled(stack, faults):
            done = stack.idstack("rotate", "--force", check=False)
        printed = f"{name}: {done.stdout}{done.stderr}"
        assert done.returncode == 1, printed
        assert [word for word in words if word not in printed] == [], printed
        assert "Traceback" not in printed
        assert client.refusals == [], printed

    with signing_in(stack) as client:
        stack.idstack("recover")
        stack.idstack("rotate", "--force")
        renewed = stack.control_plane["cloudProvider"]["thumbprint"]
        client.await_certificate(renewed)
    assert client.failures == []
    assert renewed != thumbprint
    assert applications(stack) == before
    assert stack.preview() == {}
