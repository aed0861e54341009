"""Ten renewals in a row, each due by its schedule, with clients that sign in all the while; and what breaks them."""

from __future__ import annotations

import pytest

from identity.azure.registered_certificates import thumbprint
from tests.engine.clients import report, signing_in, upstream_client
from tests.engine.out_of_band import OutOfBand
from tests.engine.rotations import Rotating

pytestmark = pytest.mark.nightly
_RENEWALS = 10
# One replica of eight learns of everything a minute late.
_SLOW = (0.0,) * 7 + (60.0,)


def test_ten_renewals_by_schedule_without_one_failed_sign_in(
    rotating: Rotating, capsys: pytest.CaptureFixture[str]
) -> None:
    with signing_in(rotating.stack, rotating.file) as clients:
        try:
            for number in range(1, _RENEWALS + 1):
                for client in clients.values():
                    client.await_certificates(number)
                printed = rotating.renew().stdout
                if number == 1:
                    assert "+ 6 created" in printed, "of both applications: certificate, registration and gate"
                    assert "~ 4 updated" in printed, "of both: schedule and secret"
                else:
                    assert "~ 6 updated" in printed, "of both applications: schedule, gate and secret"
                    assert "+-4 replaced" in printed, "of both: certificate and registration"
                assert len(rotating.registered()) == 2
            for client in clients.values():
                client.await_certificates(_RENEWALS + 1)
        finally:
            with capsys.disabled():
                print(report(clients))

    for client in clients.values():
        assert client.failures == []
        assert len(client.sign_ins) == _RENEWALS + 1


@pytest.mark.parametrize(
    ("successes", "settle"), [(1, 0), (2, 1)], ids=["a gate that trusts one success", "a settle time too short"]
)
def test_these_clients_see_a_gate_that_asks_too_little(rotating: Rotating, successes: int, settle: int) -> None:
    with (
        rotating.propagation(successes=successes, settle=settle, replica_delays=_SLOW),
        signing_in(rotating.stack, rotating.file) as clients,
    ):
        for client in clients.values():
            client.await_certificates(1)
        rotating.renew()
        clients["vault"].await_refusal(rotating.thumbprint)


def test_these_clients_see_a_missing_spare(rotating: Rotating) -> None:
    before, someone = rotating.thumbprint, OutOfBand(rotating.stack)
    with signing_in(rotating.stack, rotating.file) as clients:
        clients["azure-identity"].await_certificate(before)  # the mount has it
    # It does not look at the file again for six hours.
    with upstream_client(rotating.stack, rotating.file) as pod:
        pod.await_certificate(before)
        rotating.renew()
        pod.await_sign_ins(20)
        assert pod.failures == []
        assert set(pod.sign_ins) == {before}, "the spare keeps it going"

        application = f"/applications(appId='{rotating.client_id}')"
        registered = someone.graph("GET", f"{application}?$select=keyCredentials")["keyCredentials"]
        kept = [resource for resource in registered if thumbprint(resource) != before]
        assert len(kept) < len(registered)
        someone.graph("PATCH", application, {"keyCredentials": kept})
        pod.await_refusal(before)
