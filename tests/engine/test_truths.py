"""Azure's truths bite whoever does not know them. Each is met twice: without the program's countermeasure, and with it.

One local cloud with its dials turned up, so that every truth is met, and one stack that finds its names taken.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from azure.core.exceptions import ClientAuthenticationError

from identity.clouds import LOCAL_SUBSCRIPTION_ID, LocalEnvironment
from identity.credentials.certificate import IssuedCertificate, issue
from identity.credentials.document import encode
from identity.credentials.probe.metrics import Metrics
from identity.credentials.probe.prober import Prober
from identity.credentials.probe.proof import ProofCall
from identity.credentials.probe.source import Source
from identity.credentials.sign_in import refusal, sign_in
from identity.naming import role_assignment_name, role_definition_id
from localcloud.providers.azure_native.session import Session
from localcloud.providers.client import RefusalError
from localcloud.providers.settings import ProviderSettings
from plugin import Secret
from provider.sign_in_gate import SignInGate
from tests.engine.killing import small_stack
from tests.harness import Graph, LocalStack

_GROUP: Final = f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/resourceGroups/identity-local"
_MANAGED: Final = f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/resourceGroups/hc1-managed"
_VAULT: Final = f"{_GROUP}/providers/Microsoft.KeyVault/vaults/kv-idstack-local"
_SECRET: Final = "ingress-hc1-json"
_DNS: Final = f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/resourceGroups/dns-local"
# The small stack's ingress operator has the seeded managed identity.
_IDENTITIES: Final = f"{_GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
_INGRESS: Final = f"{_IDENTITIES}/hc1-image-registry"
_INGRESS_ROLE: Final = "0336e1d3-7a87-462b-b6db-342b63f7802c"
_PRINCIPAL: Final = "hc1-cloud-provider-entra-principal"
_OF_PRINCIPAL: Final = role_assignment_name("hc1-infra", "cloud-provider", _MANAGED)
_READER: Final = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
_LAG: Final = 6.0  # seconds of the slow replicas
_PATIENCE: Final = 60  # seconds until a missing event is a failure
_DIALS: Final[dict[str, Any]] = {
    "replica_delays": [0.0, _LAG, _LAG],
    "principal_delay": 60.0,
    "role_delay": 3.0,
    "federated_credential_write": 1.0,
    # As many at once that three more tries are enough: the engine and the program together have forty reads under way.
    "arm_requests": {"read": [20, 20]},
}

# What a program looks like that has never met Azure.
_NAIVE: Final = f"""
import pulumi
from pulumi_azure_native import authorization, managedidentity

group = {{"resource_group_name": "identity-local"}}
identity = managedidentity.UserAssignedIdentity("identity", resource_name_="naive", location="eastus", **group)
for number in (1, 2):
    managedidentity.FederatedIdentityCredential(
        f"credential-{{number}}",
        federated_identity_credential_resource_name=f"credential-{{number}}",
        resource_name_=identity.name,
        issuer="https://issuer.example.com",
        subject=str(number),
        audiences=["openshift"],
        **group,
    )
authorization.RoleAssignment(
    "assignment",
    role_assignment_name="{uuid.uuid4()}",
    scope="{_MANAGED}",
    principal_id=identity.principal_id,
    role_definition_id="{role_definition_id(LOCAL_SUBSCRIPTION_ID, _READER)}",
)
"""


@dataclass
class Hindered:
    """A stack whose names were taken, brought up by doing what each failed `up` said.

    `refused` are the local ARM's refusals on the way, as (method, path, code); `said` all that was printed.
    """

    stack: LocalStack
    session: Session
    said: str = ""
    commands: list[str] = field(default_factory=list)
    refused: list[tuple[str, str, str]] = field(default_factory=list)

    def up(self) -> bool:
        """One `up`, and if it fails what `idstack up` says to do about it; tells whether it went through."""
        done = self.stack.up(check=False)
        if done.returncode == 0:
            return True
        advised = self.stack.idstack("up", check=False)
        self.said += done.stdout + advised.stdout + advised.stderr
        commands = re.findall(r"^    (\.venv/bin/idstack .*)$", advised.stderr, re.MULTILINE)
        for command in commands:
            self.stack.run("sh", "-c", command)
        self.commands += commands
        return False


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Nothing but Azure's side, as HyperShift's operators have the rest."""
    with small_stack(tmp_path_factory.mktemp("truths"), "hypershift", **_DIALS) as made:
        yield made


@pytest.fixture(scope="module")
def session(stack: LocalStack) -> Session:
    """ARM and Key Vault as azure-native speaks to them."""
    return Session.open(ProviderSettings.load("azure-native", {}, stack.variables))


@pytest.fixture(scope="module")
def hindered(stack: LocalStack, session: Session) -> Hindered:
    """Vault and secret are deleted and recoverable; HyperShift's CLI and somebody else have assigned roles before."""
    _vault_with_a_deleted_secret(session)
    principal = session.arm.get(_INGRESS, "2023-01-31")["properties"]["principalId"]
    _assign(session, _MANAGED, role_assignment_name("hc1-infra", "ingress", _MANAGED), principal, _INGRESS_ROLE)
    _assign(session, _DNS, str(uuid.uuid4()), principal, _INGRESS_ROLE)
    hindered = Hindered(stack, session)
    before = len(_refusals(stack))
    # An `up` stops at the first of the four names that are taken; how many it meets until then is chance.
    assert any(hindered.up() for _ in range(5)), hindered.said
    hindered.refused = _refusals(stack)[before:]
    return hindered


def _vault_with_a_deleted_secret(session: Session) -> None:
    properties = {
        "tenantId": session.client_config()["tenantId"],
        "sku": {"family": "A", "name": "standard"},
        "enableRbacAuthorization": True,
        "softDeleteRetentionInDays": 7,
    }
    session.arm.put(_VAULT, "2024-11-01", {"location": "eastus", "properties": properties})
    session.arm.put(f"{_VAULT}/secrets/{_SECRET}", "2024-11-01", {"properties": {"value": "before"}})
    session.delete_from_vault("kv-idstack-local", "secrets", _SECRET)
    session.arm.delete(_VAULT, "2024-11-01")


def _assign(session: Session, scope: str, name: str, principal: str, role: str) -> None:
    properties = {
        "principalId": principal,
        "principalType": "ServicePrincipal",
        "roleDefinitionId": role_definition_id(LOCAL_SUBSCRIPTION_ID, role),
    }
    path = f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}"
    session.arm.put(path, "2022-04-01", {"properties": properties})


def _fresh_principal(session: Session, name: str) -> str:
    """Object id of a new managed identity."""
    made = session.arm.put(f"{_IDENTITIES}/{name}", "2023-01-31", {"location": "eastus"})
    return str(made["properties"]["principalId"])


def _refusals(stack: LocalStack) -> list[tuple[str, str, str]]:
    log = (stack.state / "daemon.log").read_text(encoding="utf-8")
    return re.findall(r"arm refused (\w+) (\S+): \d+ (\w+)", log)


@pytest.fixture(scope="module")
def naive(stack: LocalStack, hindered: Hindered, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """The naive program on the same cloud and engine: the codes of its refusals, and that it failed."""
    project = tmp_path_factory.mktemp("naive")
    (project / "Pulumi.yaml").write_text("name: naive\nruntime: python\n")
    (project / "__main__.py").write_text(_NAIVE)
    before = len(_refusals(stack))
    stack.run("pulumi", "stack", "init", "naive", directory=project)
    done = stack.run("pulumi", "up", "--yes", "--skip-preview", "--continue-on-error", directory=project, check=False)
    assert done.returncode != 0
    return [(method, code) for method, _, code in _refusals(stack)[before:]]


def _codes(hindered: Hindered) -> set[str]:
    return {code for _, _, code in hindered.refused}


_CONCURRENT: Final = "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity"


def test_federated_credentials_side_by_side_are_refused_and_one_after_another_they_are_not(
    hindered: Hindered, naive: list[tuple[str, str]]
) -> None:
    assert ("PUT", _CONCURRENT) in naive
    assert _CONCURRENT not in _codes(hindered)


def test_a_fresh_principal_is_found_only_by_those_who_say_what_it_is(
    hindered: Hindered, naive: list[tuple[str, str]], session: Session
) -> None:
    principal, role = _fresh_principal(session, "fresh"), role_definition_id(LOCAL_SUBSCRIPTION_ID, _READER)
    properties = {"principalId": principal, "roleDefinitionId": role}
    path = f"{_MANAGED}/providers/Microsoft.Authorization/roleAssignments/{uuid.uuid4()}"

    with pytest.raises(RefusalError, match='Code="PrincipalNotFound"'):
        session.arm.put(path, "2022-04-01", {"properties": properties})
    # The SDK of azure-native says "User" for those who say nothing.
    assert ("PUT", "UnmatchedPrincipalType") in naive
    assert _codes(hindered) & {"PrincipalNotFound", "UnmatchedPrincipalType"} == set()


def test_names_that_are_taken_stop_an_up_with_the_commands_that_free_them(hindered: Hindered) -> None:
    verbs = [" ".join(command.split()[1:3]) for command in hindered.commands]

    assert "A vault with the same name already exists in deleted state" in hindered.said
    assert f"cannot create already existing resource '{_MANAGED}/providers/Microsoft" in hindered.said
    assert 'Code="RoleAssignmentExists"' in hindered.said
    assert "currently in a deleted but recoverable state" in hindered.said
    assert sorted(verbs) == ["import --stack"] * 4 + ["local recover"] * 2


def test_whoever_does_not_wait_is_throttled(stack: LocalStack, session: Session) -> None:
    local, token = stack.environment, session.sign_in.token(session.cloud.arm_scope)

    async def at_once() -> list[httpx.Response]:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=local.arm_endpoint, headers=headers, verify=_trust(local)) as client:
            query = {"api-version": "2024-03-01"}
            return list(await asyncio.gather(*(client.get(_GROUP, params=query, timeout=60) for _ in range(120))))

    refused = [answer for answer in asyncio.run(at_once()) if answer.status_code == 429]
    assert refused
    assert {answer.headers["Retry-After"] for answer in refused} == {"1"}


def _trust(local: LocalEnvironment) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=local.ca_file)


@pytest.fixture
def graph(hindered: Hindered, monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    """Graph, and clients in this process trust the local cloud."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", hindered.stack.environment.ca_file)
    made = Graph(hindered.stack.environment)
    yield made
    made.close()


def _issued() -> IssuedCertificate:
    return issue("truth", not_before=datetime.now(UTC) - timedelta(minutes=5), lifetime=timedelta(days=1))


def _gate(local: LocalEnvironment, client_id: str, issued: IssuedCertificate) -> None:
    """What the program does between registration and secret."""
    inputs = {
        "authorityHost": local.authority_host,
        "tenantId": local.tenant_id,
        "clientId": client_id,
        "certificatePem": issued.certificate_pem,
        "privateKeyPem": Secret(issued.private_key_pem),
        "registration": "1",
        "scope": "https://management.azure.com/.default",
        "successes": 5,
        "settleSeconds": int(_LAG) + 1,
        "timeoutSeconds": _PATIENCE,
    }
    SignInGate().create("urn:pulumi:local::idstack::idstack:index:SignInGate::gate", inputs, preview=False)


def _sign_ins(local: LocalEnvironment, client_id: str, issued: IssuedCertificate) -> list[str | None]:
    """Ten sign-ins: the AADSTS code of each refused one."""
    return [_sign_in(local, client_id, issued) for _ in range(10)]


def _sign_in(local: LocalEnvironment, client_id: str, issued: IssuedCertificate) -> str | None:
    bundle = (issued.private_key_pem + issued.certificate_pem).encode()
    scope = "https://management.azure.com/.default"
    try:
        sign_in(local.authority_host, local.tenant_id, client_id, bundle, scope)
    except ClientAuthenticationError as error:
        return refusal(error).code
    return None


def test_a_fresh_certificate_is_refused_by_some_replica_but_not_once_the_gate_has_proven_it(
    hindered: Hindered, graph: Graph
) -> None:
    local, first, second = hindered.stack.environment, _issued(), _issued()
    client_id, _ = graph.fresh_application_with(first.certificate_pem)
    _gate(local, client_id, first)

    graph.register(client_id, first.certificate_pem, second.certificate_pem)
    at_once = _sign_ins(local, client_id, second)
    _gate(local, client_id, second)

    assert "AADSTS700027" in at_once
    assert _sign_ins(local, client_id, second) == [None] * 10


def test_a_fresh_role_has_no_effect_at_first_and_a_probe_that_is_left_alone_gets_ready(
    hindered: Hindered, graph: Graph, tmp_path: Path
) -> None:
    local, issued = hindered.stack.environment, _issued()
    client_id, object_id = graph.fresh_application_with(issued.certificate_pem)
    _gate(local, client_id, issued)
    file = tmp_path / "credential"
    file.write_text(_document(local, client_id, issued))
    call = ProofCall.parse(
        json.dumps(
            {
                "method": "GET",
                "url": f"{local.arm_endpoint}{_MANAGED}?api-version=2021-04-01",
                "scope": "https://management.azure.com/.default",
            }
        )
    )
    prober = Prober(Source("file", str(file)), call, Metrics())

    _assign(hindered.session, _MANAGED, str(uuid.uuid4()), object_id, _READER)
    at_once = prober.prove()
    running = threading.Thread(target=prober.run, args=(timedelta(seconds=0.2),))
    running.start()
    try:
        assert "403 AuthorizationFailed" in str(at_once.error)
        _await_ready(prober)
    finally:
        prober.stop()
        running.join(_PATIENCE)
        prober.close()


def _await_ready(prober: Prober) -> None:
    deadline = datetime.now(UTC) + timedelta(seconds=_PATIENCE)
    while not prober.report.is_ready:
        assert datetime.now(UTC) < deadline, prober.report
        threading.Event().wait(0.1)


def _document(local: LocalEnvironment, client_id: str, issued: IssuedCertificate) -> str:
    return encode(
        authentication_endpoint=local.authority_host,
        client_id=client_id,
        tenant_id=local.tenant_id,
        certificate_pem=issued.certificate_pem,
        private_key_pem=issued.private_key_pem,
        not_before=issued.not_before,
        not_after=issued.not_after,
        renew_after=issued.not_before + timedelta(hours=12),
        cannot_renew_after=issued.not_after,
    )


def test_arm_deletes_no_secret_and_the_stack_does_at_the_vault(hindered: Hindered) -> None:
    session, stack = hindered.session, hindered.stack
    with pytest.raises(RefusalError, match='Code="MethodNotAllowed"'):
        session.arm.delete(f"{_VAULT}/secrets/{_SECRET}", "2024-11-01")

    urn = stack.resource("hc1-ingress-credential-secret")["urn"]
    stack.pulumi("destroy", "--yes", "--skip-preview", "--target", urn)

    assert session.arm.find(f"{_VAULT}/secrets/{_SECRET}", "2024-11-01") is None
    assert ("keyvault-secret", f"kv-idstack-local/{_SECRET}") in stack.inventory(), "soft-deleted"


def test_an_assignment_that_outlived_its_principal_blocks_its_name_and_none_outlives_the_stack(
    hindered: Hindered,
) -> None:
    session, stack = hindered.session, hindered.stack
    name = str(uuid.uuid4())
    _assign(session, _MANAGED, name, _fresh_principal(session, "one"), _READER)
    session.arm.delete(f"{_IDENTITIES}/one", "2023-01-31")
    with pytest.raises(RefusalError, match='Code="RoleAssignmentUpdateNotPermitted"'):
        _assign(session, _MANAGED, name, _fresh_principal(session, "one"), _READER)

    before = len(_refusals(stack))
    first = stack.resource(_PRINCIPAL)["outputs"]["objectId"]
    stack.pulumi("destroy", "--yes", "--skip-preview")
    _purge(session)
    stack.up()

    # A hundred resources at once are throttled, and only take longer.
    met = {"ResourceNotFound", "RoleAssignmentNotFound", "SubscriptionRequestsThrottled"}
    assert {code for _, _, code in _refusals(stack)[before:]} == met
    second = stack.resource(_PRINCIPAL)["outputs"]["objectId"]
    assignment = f"{_MANAGED}/providers/Microsoft.Authorization/roleAssignments/{_OF_PRINCIPAL}"
    assert session.arm.get(assignment, "2022-04-01")["properties"]["principalId"] == second != first


def _purge(session: Session) -> None:
    place = f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/providers/Microsoft.KeyVault/locations/eastus"
    path = f"{place}/deletedVaults/kv-idstack-local/purge"
    assert session.arm._send("POST", path, "2024-11-01").is_success
