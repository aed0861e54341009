"""Azure's truths bite a program that does not know them. Each is met with and without the program's countermeasure.

One local cloud with its faults turned up, so that every quirk is met, and one stack that finds its names taken.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from identity.clouds import LOCAL_SUBSCRIPTION_ID, LocalEnvironment
from identity.credentials.probe.credential_source import CredentialSource
from identity.credentials.probe.metrics import Metrics
from identity.credentials.probe.prober import Prober
from identity.credentials.probe.report import ProofRequest
from identity.naming import role_assignment_name, role_definition_id
from localcloud.testing.plugins import ArmSession, AzureProviderSettings, RefusalError
from tests.engine.fresh_certificate import LAG, TIMEOUT, await_ready, fresh_certificate, gate, sign_ins
from tests.engine.name_conflicts import (
    GROUP,
    IDENTITIES,
    MANAGED,
    READER,
    SECRET,
    VAULT,
    NameConflicts,
    assign,
    fresh_principal,
    naive_refusals,
    purge,
    refusals,
    take_names,
)
from tests.engine.out_of_band import OutOfBand
from tests.engine.small_stack import small_stack
from tests.harness import LocalStack
from tests.unit.identity.credentials.world import document

pytestmark = pytest.mark.nightly

_PRINCIPAL: Final = "hc1-cloud-provider-entra-principal"
_OF_PRINCIPAL: Final = role_assignment_name("hc1-infra", "cloud-provider", MANAGED)
_CONCURRENT: Final = "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity"
_FAULTS: Final[dict[str, Any]] = {
    "replica_delays": [0.0, LAG, LAG],
    "principal_delay": 60.0,
    # Longer than a sign-in and a request take on a busy machine.
    "role_delay": 10.0,
    "federated_credential_write": 1.0,
    # As many at once that three more tries are enough: the engine and the program together have forty reads under way.
    "arm_requests": {"read": [20, 20]},
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Nothing but Azure's side, as HyperShift's operators have the rest."""
    with small_stack(tmp_path_factory.mktemp("truths"), "hypershift", **_FAULTS) as made:
        # Somebody beside the stack assigns what the stack never would.
        made.administer()
        yield made


@pytest.fixture(scope="module")
def session(stack: LocalStack) -> ArmSession:
    """ARM and Key Vault as azure-native speaks to them."""
    return ArmSession.open(AzureProviderSettings.load("azure-native", {}, stack.variables))


@pytest.fixture(scope="module")
def conflicts(stack: LocalStack, session: ArmSession) -> NameConflicts:
    """Brought up by following the hints of each failed `up`."""
    take_names(session)
    conflicts = NameConflicts(stack, session)
    before = len(refusals(stack))
    # An `up` stops at the first of the four names that are taken; how many it meets until then is chance.
    assert any(conflicts.up() for _ in range(5)), conflicts.printed
    conflicts.refused = refusals(stack)[before:]
    return conflicts


@pytest.fixture(scope="module")
def naive(
    stack: LocalStack, conflicts: NameConflicts, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[str, str]]:
    """What refuses a program that has never met Azure, on the same cloud and engine."""
    return naive_refusals(stack, tmp_path_factory.mktemp("naive"))


def _codes(conflicts: NameConflicts) -> set[str]:
    return {code for _, _, code in conflicts.refused}


def test_concurrent_federated_credentials_are_refused_sequential_ones_not(
    conflicts: NameConflicts, naive: list[tuple[str, str]]
) -> None:
    assert ("PUT", _CONCURRENT) in naive
    assert _CONCURRENT not in _codes(conflicts)


def test_a_fresh_principal_is_found_only_by_those_who_say_what_it_is(
    conflicts: NameConflicts, naive: list[tuple[str, str]], session: ArmSession
) -> None:
    principal, role = fresh_principal(session, "fresh"), role_definition_id(LOCAL_SUBSCRIPTION_ID, READER)
    properties = {"principalId": principal, "roleDefinitionId": role}
    path = f"{MANAGED}/providers/Microsoft.Authorization/roleAssignments/{uuid.uuid4()}"

    with pytest.raises(RefusalError, match='Code="PrincipalNotFound"'):
        session.arm.put(path, "2022-04-01", {"properties": properties})
    # The SDK of azure-native sends "User" where the principal type is missing.
    assert ("PUT", "UnmatchedPrincipalType") in naive
    assert _codes(conflicts) & {"PrincipalNotFound", "UnmatchedPrincipalType"} == set()


def test_names_that_are_taken_stop_an_up_with_the_commands_that_free_them(conflicts: NameConflicts) -> None:
    verbs = [" ".join(command.split()[1:3]) for command in conflicts.commands]

    assert "A vault with the same name already exists in deleted state" in conflicts.printed
    assert f"cannot create already existing resource '{MANAGED}/providers/Microsoft" in conflicts.printed
    assert 'Code="RoleAssignmentExists"' in conflicts.printed
    assert "currently in a deleted but recoverable state" in conflicts.printed
    assert sorted(verbs) == ["import --stack"] * 4 + ["local recover"] * 2


def test_a_client_that_does_not_wait_is_throttled(stack: LocalStack, session: ArmSession) -> None:
    local, token = stack.environment, session.sign_in.token(session.cloud.arm_scope)

    async def at_once() -> list[httpx.Response]:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=local.arm_endpoint, headers=headers, verify=_trust(local)) as client:
            query = {"api-version": "2024-03-01"}
            return list(await asyncio.gather(*(client.get(GROUP, params=query, timeout=60) for _ in range(120))))

    refused = [answer for answer in asyncio.run(at_once()) if answer.status_code == 429]
    assert refused
    assert {answer.headers["Retry-After"] for answer in refused} == {"1"}


def _trust(local: LocalEnvironment) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=local.ca_file)


@pytest.fixture
def somebody(conflicts: NameConflicts, monkeypatch: pytest.MonkeyPatch) -> OutOfBand:
    """Who makes applications beside the stack's own; clients in this process trust the local cloud."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", conflicts.stack.environment.ca_file)
    return OutOfBand(conflicts.stack)


def test_some_replica_refuses_a_fresh_certificate_until_the_gate_passes(
    conflicts: NameConflicts, somebody: OutOfBand
) -> None:
    local, first, second = conflicts.stack.environment, fresh_certificate(), fresh_certificate()
    application, _ = somebody.application("fresh", first.certificate_pem)
    client_id = application["appId"]
    gate(local, client_id, first)

    somebody.register(f"/applications/{application['id']}", first.certificate_pem, second.certificate_pem)
    at_once = sign_ins(local, client_id, second)
    gate(local, client_id, second)

    assert "AADSTS700027" in at_once
    assert sign_ins(local, client_id, second) == [None] * 10


def test_a_fresh_role_has_no_effect_at_first_and_the_probe_gets_ready(
    conflicts: NameConflicts, somebody: OutOfBand, tmp_path: Path
) -> None:
    local, issued = conflicts.stack.environment, fresh_certificate()
    application, principal = somebody.application("fresh", issued.certificate_pem)
    client_id = application["appId"]
    gate(local, client_id, issued)
    file = tmp_path / "credential"
    file.write_text(document(issued, local.authority_host, tenant_id=local.tenant_id, client_id=client_id))
    call = ProofRequest.parse(
        json.dumps(
            {
                "method": "GET",
                "url": f"{local.arm_endpoint}{MANAGED}?api-version=2021-04-01",
                "scope": "https://management.azure.com/.default",
            }
        )
    )
    prober = Prober(CredentialSource("file", str(file)), call, Metrics())

    somebody.assign(MANAGED, READER, principal["id"])
    at_once = prober.prove()
    running = threading.Thread(target=prober.run, args=(timedelta(seconds=0.2),))
    running.start()
    try:
        assert "403 AuthorizationFailed" in str(at_once.error)
        await_ready(prober)
    finally:
        prober.stop()
        running.join(TIMEOUT)
        prober.close()


def test_arm_deletes_no_secret_and_the_stack_does_at_the_vault(conflicts: NameConflicts) -> None:
    session, stack = conflicts.session, conflicts.stack
    with pytest.raises(RefusalError, match='Code="MethodNotAllowed"'):
        session.arm.delete(f"{VAULT}/secrets/{SECRET}", "2024-11-01")

    urn = stack.resource("hc1-ingress-credential-secret")["urn"]
    stack.pulumi("destroy", "--yes", "--skip-preview", "--target", urn)

    assert session.arm.find(f"{VAULT}/secrets/{SECRET}", "2024-11-01") is None
    assert ("keyvault-secret", f"kv-idstack-local/{SECRET}") in stack.inventory(), "soft-deleted"


def test_an_assignment_that_outlives_its_principal_blocks_its_name(
    conflicts: NameConflicts,
) -> None:
    session, stack = conflicts.session, conflicts.stack
    name = str(uuid.uuid4())
    assign(session, MANAGED, name, fresh_principal(session, "one"), READER)
    session.arm.delete(f"{IDENTITIES}/one", "2023-01-31")
    with pytest.raises(RefusalError, match='Code="RoleAssignmentUpdateNotPermitted"'):
        assign(session, MANAGED, name, fresh_principal(session, "one"), READER)

    before = len(refusals(stack))
    first = stack.resource(_PRINCIPAL)["outputs"]["objectId"]
    stack.pulumi("destroy", "--yes", "--skip-preview")
    purge(session)
    stack.up()

    # A hundred resources at once may be throttled, if the machine is quick enough, and then only take longer.
    met = {code for _, _, code in refusals(stack)[before:]} - {"SubscriptionRequestsThrottled"}
    # The schedules' secrets are looked at before there is a vault again. The last is of federated credentials.
    assert met == {"ResourceNotFound", "ParentResourceNotFound", "RoleAssignmentNotFound", "NotFound"}
    second = stack.resource(_PRINCIPAL)["outputs"]["objectId"]
    assignment = f"{MANAGED}/providers/Microsoft.Authorization/roleAssignments/{_OF_PRINCIPAL}"
    assert session.arm.get(assignment, "2022-04-01")["properties"]["principalId"] == second != first
