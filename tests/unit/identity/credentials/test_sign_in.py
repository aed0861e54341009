"""A certificate is proven by sign-ins in a row, each past every cache."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from identity.credentials.certificate import IssuedCertificate
from identity.credentials.sign_in import SignInFailedError, prove
from tests.unit.identity.credentials.world import ARM_SCOPE, CLIENT, TENANT, Entra, certificate

START = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
NOT_REGISTERED = "AADSTS700027: The certificate is not registered on application."


class FakeTime:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = START
        self.passed = 0.0
        self.slept: list[float] = []

    def clock(self) -> datetime:
        return self.now

    def monotonic(self) -> float:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.passed += seconds
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


def proven(entra: Entra, issued: IssuedCertificate, time: FakeTime, **changes: Any) -> datetime:
    arguments: dict[str, Any] = {
        "successes": 5,
        "settle": timedelta(seconds=30),
        "timeout": timedelta(seconds=600),
        "sleep": time.sleep,
        **changes,
    }
    return prove(
        arguments.pop("authority_host", f"{entra.url}/"),
        arguments.pop("tenant_id", TENANT),
        CLIENT,
        issued.certificate_pem,
        issued.private_key_pem,
        ARM_SCOPE,
        clock=time.clock,
        monotonic=time.monotonic,
        **arguments,
    )


def test_five_sign_ins_are_spread_evenly_over_the_settle_time(
    entra: Entra, issued: IssuedCertificate, time: FakeTime
) -> None:
    entra.registered.append(issued.certificate_pem)
    assert proven(entra, issued, time) == START + timedelta(seconds=30)
    assert time.slept == [7.5, 7.5, 7.5, 7.5]
    assert entra.attempts == 5, "no sign-in may come from a cache"
    assert len({seen["claims"]["jti"] for seen in entra.assertions}) == 5


def test_a_failure_starts_the_row_again(entra: Entra, issued: IssuedCertificate, time: FakeTime) -> None:
    entra.registered.append(issued.certificate_pem)

    def sleep(seconds: float) -> None:
        time.sleep(seconds)
        if len(time.slept) == 4:  # the fifth sign-in meets a replica that lags behind
            entra.refusals.append(NOT_REGISTERED)

    assert proven(entra, issued, time, sleep=sleep) == START + timedelta(seconds=60.5)
    assert entra.attempts == 10


def test_a_wall_clock_that_is_set_back_does_not_move_the_deadline(
    entra: Entra, issued: IssuedCertificate, time: FakeTime
) -> None:
    def sleep(seconds: float) -> None:
        time.sleep(seconds)
        time.now -= timedelta(days=1)

    with pytest.raises(SignInFailedError, match="accepted: 5 sign-ins in a row"):
        proven(entra, issued, time, timeout=timedelta(seconds=60), sleep=sleep)
    assert sum(time.slept) <= 60


def test_pauses_after_failures_grow_from_half_a_second_to_five(
    entra: Entra, issued: IssuedCertificate, time: FakeTime
) -> None:
    entra.registered.append(issued.certificate_pem)
    proven(entra, issued, time, successes=1)
    assert (entra.attempts, time.slept) == (1, []), "one is enough if one is asked for"
    entra.refusals.extend([NOT_REGISTERED] * 6)
    proven(entra, issued, time, successes=1)
    assert time.slept == [0.5, 1, 2, 4, 5, 5]


def test_a_certificate_that_stays_unknown_fails_with_the_last_answer(entra: Entra, time: FakeTime) -> None:
    stranger = certificate()
    with pytest.raises(SignInFailedError) as caught:
        proven(entra, stranger, time, timeout=timedelta(seconds=40))
    assert str(caught.value) == (
        f"client {CLIENT} cannot sign in to tenant {TENANT} at {entra.url}/ with certificate {stranger.thumbprint}: "
        "found 11 attempts, at best 0 in a row, last failure AADSTS700027: The certificate is not registered on "
        "application.; accepted: 5 sign-ins in a row over 30 s within 40 s; check that the certificate is registered "
        "on the application, or allow more time (credentials.propagation.timeoutSeconds)"
    )
    assert sum(time.slept) <= 40
    link: BaseException | None = caught.value
    while link is not None:
        assert not any(line in f"{link!s}{vars(link)}" for line in stranger.private_key_pem.splitlines()[1:-1])
        link = link.__cause__ or link.__context__


def test_a_tenant_a_key_or_an_entra_that_is_not_there_is_told_by_its_failure(
    entra: Entra, issued: IssuedCertificate, time: FakeTime
) -> None:
    with pytest.raises(SignInFailedError, match="AADSTS90002: Tenant 'nobody' not found"):
        proven(entra, issued, time, tenant_id="nobody")
    assert time.slept == []
    entra.registered.append(issued.certificate_pem)
    forged = IssuedCertificate(
        issued.certificate_pem, certificate().private_key_pem, issued.thumbprint, issued.not_before, issued.not_after
    )
    with pytest.raises(SignInFailedError, match="AADSTS700027: Client assertion contains an invalid signature"):
        proven(entra, forged, time, timeout=timedelta(seconds=30))
    with pytest.raises(SignInFailedError, match="found 9 attempts, at best 0 in a row"):
        proven(entra, issued, time, authority_host="https://127.0.0.1:1", timeout=timedelta(seconds=30))


@pytest.mark.parametrize("changes", [{"successes": 0}, {"settle": timedelta(seconds=601)}])
def test_what_can_never_succeed_is_refused(
    entra: Entra, issued: IssuedCertificate, time: FakeTime, changes: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="at least one, and settle <= timeout"):
        proven(entra, issued, time, **changes)
