"""The first `up` on a stack of the release before: its keys leave the state, and no pod notices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.clients import signing_in
from tests.engine.earlier_release import make_earlier
from tests.engine.key_material import KeySearch, vault_keys
from tests.engine.killing import documents, small_stack
from tests.engine.out_of_band import OutOfBand
from tests.engine.rotations import SETTLED
from tests.harness import LocalStack

pytestmark = pytest.mark.slow

_NAMESPACE = "clusters-hc1"


@pytest.fixture
def earlier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalStack]:
    """A stack of the release before; clients in this process trust its cloud."""
    with (
        small_stack(tmp_path, "stack") as stack,
        stack.configured(credentials={"propagation": SETTLED}),
    ):
        stack.up()
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", stack.environment.ca_file)
        make_earlier(stack, OutOfBand(stack))
        yield stack


def _keys_in_the_state(stack: LocalStack) -> set[str]:
    exported = stack.pulumi("stack", "export", "--show-secrets").stdout
    return KeySearch(vault_keys(stack)).names_in(exported.encode())


def _registered(stack: LocalStack) -> list[int]:
    """How many certificates each of the stack's applications has."""
    own = {each["clientID"] for each in stack.control_plane.values() if each["generation"]}
    applications = [each for each in documents(stack, "entra-application") if each["appId"] in own]
    return [sum(key["removedAt"] is None for key in each["keys"]) for each in applications]


def test_the_first_up_takes_the_keys_out_and_no_sign_in_fails(earlier: LocalStack) -> None:
    assert _keys_in_the_state(earlier), "the test would prove nothing"
    preview = earlier.idstack("preview", check=False)
    assert preview.returncode != 0
    reasons = preview.stdout.partition("Diagnostics:")[2]
    assert reasons.count("the state has the schema 1 of this plugin") == 1, preview.stdout
    mounts = Path(earlier.environment.mounts_dir, _NAMESPACE)
    file = next(mounts.glob("*/mnt/certs/cloud-provider-hc1-json"))

    with signing_in(earlier, file) as clients:
        for client in clients.values():
            client.await_certificates(1)
        printed = earlier.idstack("up").stdout
        for client in clients.values():
            client.await_certificates(2)
            client.await_sign_ins(5)

    assert [client.failures for client in clients.values()] == [[]] * len(clients)
    assert printed.count("the release before kept private keys") == 1, printed
    assert _keys_in_the_state(earlier) == set()
    assert "privateKeyPem" not in json.dumps(earlier.resources())
    assert _registered(earlier) == [2, 2], "the certificate before, and the new one"
    assert earlier.preview() == {}
    down = earlier.idstack("down").stdout
    assert "nothing of the local stack is left" in down
