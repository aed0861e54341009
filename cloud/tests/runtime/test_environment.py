"""A state directory made ready: kept addresses and identities, private files, and what tmpfs loses made again."""

from __future__ import annotations

import secrets
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from localcloud.azure.authorization import Attributes, Authorization, built_in_roles
from localcloud.azure.entra.api import app
from localcloud.azure.shared.faults import FAULTS_VARIABLE, Faults
from localcloud.core.clouds import LocalEnvironment
from localcloud.core.state_directory import StateDirectory
from localcloud.runtime.environment import ADDRESS, AKS_WEBHOOKS, PortTakenError, Prepared, listen, prepare
from localcloud.runtime.seed import seed
from localcloud.runtime.seed_file import load
from localcloud.testing.hosts import Certificates, Serve
from tests.source import PACKAGES
from tests.token_client import deployer_credential

SUBSCRIPTION = "/subscriptions/10ca1000-0000-4000-8000-000000000002"


# The local stack's.
SEED = load(PACKAGES / "emulated/seed.yaml")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    made = StateDirectory(tmp_path / "state")
    yield made
    if made.exists():
        made.remove()


@pytest.fixture
def ready(state: StateDirectory) -> Iterator[Callable[[], Prepared]]:
    """`prepare`, as a process does at its start."""
    opened: list[Prepared] = []

    def again() -> Prepared:
        opened.append(prepare(state, SEED))
        return opened[-1]

    yield again
    for prepared in opened:
        prepared.close()


def documents(prepared: Prepared) -> dict[str, str]:
    rows = prepared.store.items("arm")
    return {key: str(document) for key, document in rows}


def test_a_second_start_changes_no_address_and_no_identity(ready: Callable[[], Prepared]) -> None:
    first, second = ready(), ready()

    assert second.environment == first.environment
    assert second.kubernetes_token == first.kubernetes_token
    assert LocalEnvironment.from_file(first.state.environment_file) == first.environment
    assert len(set(first.ports.values())) == len(first.ports)


def test_only_their_owner_can_read_files_with_keys(state: StateDirectory, ready: Callable[[], Prepared]) -> None:
    ready()
    for file in (state.server_file, state.deployer_file, state.kubeconfig, state.store_file, state.root / "seal.key"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert stat.S_IMODE(state.run.stat().st_mode) == 0o700


def test_what_a_reboot_takes_from_tmpfs_is_made_again(
    state: StateDirectory, ready: Callable[[], Prepared], serve: Serve, certificates: Certificates
) -> None:
    before = ready()
    seed(before)
    imported = state.msi / "hc1-image-registry.json"
    document = imported.read_text()
    shutil.rmtree(state.run.resolve())

    after = ready()
    seed(after)

    assert imported.read_text() == document, "the stack that imported the document sees no change"
    assert after.environment == before.environment
    authority, trusted = serve(app(after.cloud)), str(certificates.ca_file)
    credential = deployer_credential(after.environment, authority=authority, connection_verify=trusted)
    assert credential.get_token("https://management.azure.com/.default").token


def test_removing_leaves_neither_directory(state: StateDirectory, ready: Callable[[], Prepared]) -> None:
    ready().close()
    run = state.run.resolve()

    state.remove()

    assert not state.root.exists()
    assert not run.exists()


def test_a_directory_without_a_local_cloud_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("")

    with pytest.raises(ValueError, match="nothing was removed"):
        StateDirectory(tmp_path).remove()
    assert (tmp_path / "precious").exists()


def test_a_run_directory_that_others_can_read_is_refused(state: StateDirectory, ready: Callable[[], Prepared]) -> None:
    ready()
    state.run.resolve().chmod(0o755)

    with pytest.raises(PermissionError, match="0700"):
        ready()


def test_the_error_for_a_taken_port_names_service_and_fix() -> None:
    with socket.create_server((ADDRESS, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTakenError, match=f"port {port} of the local entra service .*stop --remove"):
            listen("entra", port)


def test_a_port_that_is_not_served_yet_is_no_other_local_clouds(
    ready: Callable[[], Prepared], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ready()
    # The other one looks first where this one has found its ports.
    choose, block = secrets.choice, first.ports["entra"] - first.ports["entra"] % 16
    tries = iter([block])
    monkeypatch.setattr(secrets, "choice", lambda blocks: next(tries, None) or choose(blocks))
    other = StateDirectory(tmp_path / "other")
    second = prepare(other)
    try:
        assert next(tries, None) is None
        assert _served(first) & _served(second) == set()
        with listen("entra", second.ports["entra"]), pytest.raises(PortTakenError):
            listen("entra", second.ports["entra"])
    finally:
        second.close()
        other.remove()


def _served(prepared: Prepared) -> set[int]:
    return {prepared.ports[service] for service in prepared.services}


def test_ports_that_were_picked_and_not_served_are_free_again(ready: Callable[[], Prepared]) -> None:
    prepared = ready()
    unserved = prepared.ports[AKS_WEBHOOKS]
    socket.create_server((ADDRESS, unserved)).close()

    prepared.close()

    for port in prepared.ports.values():
        socket.create_server((ADDRESS, port)).close()


def test_seeding_twice_adds_nothing_the_second_time(ready: Callable[[], Prepared]) -> None:
    prepared = ready()
    assert seed(prepared) > 0
    seeded = documents(prepared)

    assert seed(prepared) == 0
    assert documents(prepared) == seeded


def test_the_seeded_deployer_may_deploy_and_assign_roles_at_once(ready: Callable[[], Prepared]) -> None:
    prepared = ready()
    seed(prepared)
    deployer = prepared.cloud.directory.service_principal_by_app(prepared.environment.deployer_client_id)
    assert deployer is not None
    authorization = Authorization(prepared.store, Faults(role_delay=60))

    scope = f"{SUBSCRIPTION}/resourceGroups/identity-local"
    assert authorization.allowed(deployer.object_id, "Microsoft.KeyVault/vaults/write", scope)
    write = "Microsoft.Authorization/roleAssignments/write"
    to_a_service_principal = {"PrincipalType": "ServicePrincipal"}
    guids = {role.role_name: role.guid for role in built_in_roles().values()}
    for role, is_allowed in (("Contributor", True), ("User Access Administrator", False)):
        asked = Attributes(request={"RoleDefinitionId": guids[role], **to_a_service_principal})
        assert authorization.allowed(deployer.object_id, write, scope, attributes=asked) is is_allowed
    secret = "Microsoft.KeyVault/vaults/secrets/getSecret/action"
    assert authorization.allowed(deployer.object_id, secret, scope, data=True)
    assert deployer.roles == ("Application.ReadWrite.OwnedBy",)


def test_the_deployers_file_holds_the_registered_certificate(ready: Callable[[], Prepared]) -> None:
    prepared = ready()
    application = prepared.cloud.directory.application_by_app(prepared.environment.deployer_client_id)
    assert application is not None

    certificate = x509.load_pem_x509_certificate(prepared.state.deployer_file.read_bytes())
    assert [key_credential.certificate for key_credential in application.key_credentials] == [
        certificate.public_bytes(Encoding.DER)
    ]


def test_faults_come_from_the_environment_and_unknown_ones_are_refused() -> None:
    turned = Faults.from_environment(
        {FAULTS_VARIABLE: '{"replica_delays": [0, 9], "graph_delays": [2], "latency": {"arm PUT": 1, "arm": 2}}'}
    )

    assert (turned.replica_delays, turned.graph_delays) == ((0, 9), (2,))
    assert (turned.latency_of("arm", "PUT"), turned.latency_of("arm", "GET"), turned.latency_of("imds", "GET")) == (
        1,
        2,
        0,
    )
    assert Faults.from_environment({}) == Faults()
    limited = Faults.from_environment({FAULTS_VARIABLE: '{"arm_requests": {"write": [5, 1], "read": null}}'})
    assert limited.arm_requests == {"write": (5, 1), "delete": (200, 10)}
    free = Faults.from_environment({FAULTS_VARIABLE: '{"graph_requests": {"write": null}, "vault_requests": {}}'})
    assert free.graph_requests == {"unit": (3500, 350), "tenant_write": (18000, 60)}
    assert (free.vault_requests, free.arm_requests) == (Faults().vault_requests, Faults().arm_requests)
    unknown = [
        f'{{"{member}": {{"writes": [1, 1]}}}}' for member in ("arm_requests", "graph_requests", "vault_requests")
    ]
    for wrong in ('{"replica_delay": 1}', "[]", '{"replica_delays": []}', '{"graph_delays": []}', *unknown):
        with pytest.raises(ValueError, match=FAULTS_VARIABLE):
            Faults.from_environment({FAULTS_VARIABLE: wrong})
