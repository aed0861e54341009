"""Certificates that are taken out of a list which Graph's replicas show later than it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from identity.azure.client import AzureClient
from identity.azure.errors import AzureRefusedError
from identity.azure.registered_certificates import withdraw, withdraw_all, withdraw_all_but
from identity.credentials.certificate import IssuedCertificate, issue, key_id
from localcloud.testing.arm import ArmWorld, world
from localcloud.testing.azure import KeyCredential, ServicePrincipal
from localcloud.testing.faults import HeldLag
from localcloud.testing.running import clock
from tests.unit.azure_world import azure, cloud, deployer

__all__ = ["azure", "cloud", "deployer", "world"]

START = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)


def issued(begins: datetime = START) -> IssuedCertificate:
    return issue("client", not_before=begins, lifetime=timedelta(days=90))


@dataclass
class Registered:
    """An application of the deployer's. `pause` does what is to happen at the end of that many pauses."""

    world: ArmWorld
    path: str
    object_id: str
    pauses: int = 0
    happens: dict[int, Callable[[], None]] = field(default_factory=dict)

    def pause(self, seconds: float) -> None:
        self.pauses += 1
        self.happens.get(self.pauses, lambda: None)()

    def register(self, *certificates: IssuedCertificate, before: timedelta = timedelta(0)) -> None:
        """Make these the registered ones, so long before now."""
        keys = [
            replace(
                KeyCredential.of(x509.load_pem_x509_certificate(certificate.certificate_pem.encode())),
                key_id=key_id(certificate.thumbprint),
            )
            for certificate in certificates
        ]
        with clock.moved_ahead(-before):
            self.world.cloud.directory.set_key_credentials(self.object_id, keys)

    def lag(self) -> None:
        """From now on every read shows what there was a minute ago."""
        self.world.hold(lags=(HeldLag("graph", since=clock.now() - timedelta(minutes=1)),))

    def catch_up(self) -> None:
        self.world.hold()

    @property
    def now(self) -> set[str]:
        """Thumbprints that are registered, whatever a replica shows."""
        found = self.world.cloud.directory.application(self.object_id)
        assert found is not None
        return {key_credential.thumbprint for key_credential in found.key_credentials}


@pytest.fixture
def registered(world: ArmWorld, deployer: ServicePrincipal) -> Registered:
    application = world.cloud.directory.create_application("client", owners=[deployer.object_id])
    return Registered(world, f"/applications/{application.object_id}", application.object_id)


def test_a_replica_without_the_new_certificate_takes_none_out(azure: AzureClient, registered: Registered) -> None:
    leaked, before, new = issued(START - timedelta(days=2)), issued(START - timedelta(days=1)), issued()
    registered.register(leaked, before, before=timedelta(hours=1))
    registered.register(leaked, before, new)
    registered.lag()
    registered.happens[7] = registered.catch_up

    withdraw_all_but(azure, registered.path, new.thumbprint, START, registered.pause)

    assert registered.now == {new.thumbprint}


def test_a_certificate_that_no_replica_shows_withdraws_nothing(azure: AzureClient, registered: Registered) -> None:
    leaked, new = issued(START - timedelta(days=1)), issued()
    registered.register(leaked, before=timedelta(hours=1))
    registered.register(leaked, new)
    registered.lag()

    with pytest.raises(
        AzureRefusedError, match=rf"{registered.path} did not have {new.thumbprint}.* Nothing was removed"
    ):
        withdraw_all_but(azure, registered.path, new.thumbprint, START, registered.pause)

    assert registered.now == {leaked.thumbprint, new.thumbprint}
    assert 60 < registered.pauses < 600, "it was patient, and not for ever"


def test_a_tag_that_names_the_leaked_certificate_withdraws_nothing(azure: AzureClient, registered: Registered) -> None:
    leaked, new = issued(START - timedelta(days=1)), issued()
    registered.register(leaked, new)

    with pytest.raises(AzureRefusedError, match=rf"{leaked.thumbprint}.* begins at .*somebody edited the tag"):
        withdraw_all_but(azure, registered.path, leaked.thumbprint, START, registered.pause)

    assert registered.now == {leaked.thumbprint, new.thumbprint}


@pytest.mark.parametrize("lags_at", [0, 5], ids=["before", "afterwards"])
def test_one_that_is_withdrawn_takes_no_newer_one_along(
    azure: AzureClient, registered: Registered, lags_at: int
) -> None:
    lost, new = issued(START - timedelta(days=1)), issued()
    registered.register(lost, before=timedelta(hours=1))
    registered.register(lost, new)
    registered.happens = {lags_at: registered.lag, lags_at + 3: registered.catch_up}
    registered.happens.pop(0, lambda: None)()

    withdraw(azure, registered.path, key_id(lost.thumbprint), registered.pause)

    assert registered.now == {new.thumbprint}
    assert registered.pauses > lags_at + 3, "it was read until every replica had it"


def test_the_only_one_is_withdrawn_where_that_is_meant(azure: AzureClient, registered: Registered) -> None:
    only = issued()
    registered.register(only)
    withdraw(azure, registered.path, key_id("AB" * 20), registered.pause)
    assert registered.pauses == 0, "one that is gone costs one read"

    with pytest.raises(AzureRefusedError, match="no other certificate"):
        withdraw(azure, registered.path, key_id(only.thumbprint), registered.pause)
    assert registered.now == {only.thumbprint}

    withdraw(azure, registered.path, key_id(only.thumbprint), registered.pause, may_be_last=True)
    assert registered.now == set()


def test_a_leaked_one_that_somebody_puts_back_is_named(azure: AzureClient, registered: Registered) -> None:
    leaked, new = issued(START - timedelta(days=1)), issued()
    registered.register(leaked, new)
    registered.happens[6] = lambda: registered.register(leaked, new)

    with pytest.raises(AzureRefusedError, match="listed again"):
        withdraw_all_but(azure, registered.path, new.thumbprint, START, registered.pause)


def test_all_of_them_are_out_when_no_replica_shows_one(azure: AzureClient, registered: Registered) -> None:
    registered.register(issued(), before=timedelta(hours=1))
    registered.lag()
    registered.happens[3] = registered.catch_up

    withdraw_all(azure, registered.path, registered.pause)

    assert registered.now == set()
    assert registered.pauses >= 7
