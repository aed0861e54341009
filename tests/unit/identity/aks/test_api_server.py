"""The look at the API server before the first resource: each failure with its cause, and what is waited for."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from identity.aks.api_server import AccessRequirements, ApiServer, ClusterNotReadyError
from identity.aks.azure_rbac import AksCluster
from identity.aks.exec_user import exec_user
from identity.aks.kinds import AZURE_CLUSTER_IDENTITIES, SECRET_PROVIDER_CLASSES, CustomKind
from identity.aks.kubeconfig import Kubeconfig
from identity.aks.login import Login
from identity.aks.permissions import Permission, cluster_wide_manifests, permissions
from identity.azure.errors import AccessError
from identity.login_kinds import Flavour, LoginKind
from localcloud.testing.hosts import Serve
from tests.unit.access_world import AKS, CLASSES, TENANT, FakeApiServer, granted_by, program, skeleton, unsigned

CLUSTER = "/subscriptions/s/resourceGroups/aks-dev/providers/Microsoft.ContainerService/managedClusters/aks-mgmt-dev"
VERDICT = "User does not have access to the resource in Azure. Update role assignment to allow access."
LOGIN = Login(kind=LoginKind.ARM, tenant_id=TENANT)
Connect = Callable[..., ApiServer]


@pytest.fixture
def api() -> FakeApiServer:
    return FakeApiServer()


@pytest.fixture
def connect(api: FakeApiServer, serve_plain: Serve, tmp_path: Path) -> Connect:
    """Connects as a user whose plugin is a program of this test's."""

    def connected(
        flavour: Flavour = Flavour.IDSTACK, *, server: str = "", path: str = "", has_azure_rbac: bool = False
    ) -> ApiServer:
        text = base64.b64decode(skeleton(server or serve_plain(api.app()))).decode()
        kubeconfig = Kubeconfig.parse(text, "kubeconfig")
        kubeconfig = kubeconfig.only(kubeconfig.chosen(), user=exec_user(LOGIN, flavour))
        environ: Mapping[str, str] = {"PATH": f"{path or program(tmp_path / 'bin')}:/usr/bin:/bin"}
        return ApiServer(kubeconfig, AksCluster(CLUSTER, has_azure_rbac), environ)

    return connected


def test_a_program_that_cannot_run_or_refuses_is_reported_with_its_reason(connect: Connect, tmp_path: Path) -> None:
    with connect() as server:
        server.check_sign_in()
    with (
        connect(Flavour.KUBELOGIN, path=str(tmp_path)) as server,
        pytest.raises(AccessError, match=r"^kubelogin cannot be run \(No such file.*`az aks install-cli` installs it"),
    ):
        server.check_sign_in()
    folder = program(tmp_path / "refusing", code=1, error="idstack: c.pem: the certificate 9F expired at 2026")
    with (
        connect(path=str(folder)) as server,
        pytest.raises(AccessError, match=r"idstack got no token for the API server: c.pem: the certificate 9F expired"),
    ):
        server.check_sign_in()


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"aud": "https://vault.azure.net", "tid": TENANT, "oid": "o"}, "its audience https://vault.azure.net"),
        ({"aud": AKS, "tid": "another", "oid": "o"}, "its tenant is another"),
        ({"aud": AKS, "tid": TENANT, "_claim_names": {"groups": "src1"}}, "more than 200 groups"),
    ],
)
def test_a_token_that_is_not_accepted_is_explained_by_its_claims(
    connect: Connect, tmp_path: Path, claims: dict[str, object], message: str
) -> None:
    token = unsigned(**claims)
    folder = program(tmp_path / "other", token=token)
    with connect(path=str(folder)) as server, pytest.raises(AccessError, match="does not accept the token") as caught:
        server.check_sign_in()
    assert message in str(caught.value)
    assert token not in str(caught.value)


def test_an_unreachable_api_server_is_reported_with_what_to_check(connect: Connect) -> None:
    with (
        connect(server="http://127.0.0.1:1") as server,
        pytest.raises(AccessError, match=r"http://127.0.0.1:1 cannot be reached.*authorized IP ranges.*publicFqdn"),
    ):
        server.check_sign_in()


def test_it_waits_for_permissions_and_kinds_and_names_them(connect: Connect, api: FakeApiServer) -> None:
    api.denied, api.absent = {"create namespaces"}, {CLASSES}
    messages: list[str] = []
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            api.denied = set()
        if len(pauses) == 4:
            api.absent = set()

    with connect() as server:
        server.wait_for(
            AccessRequirements(permissions(), (SECRET_PROVIDER_CLASSES,)), 300, log=messages.append, sleep=sleep
        )

    where = f"waiting for the cluster at {server.server}: "
    assert messages == [
        f"{where}permissions: create namespaces; kinds: secretproviderclasses.{CLASSES}",
        f"{where}kinds: secretproviderclasses.{CLASSES}",
    ]
    assert pauses == [0.5, 1, 2, 4]


def test_a_new_server_that_does_not_know_the_token_yet_is_waited_for(connect: Connect, api: FakeApiServer) -> None:
    api.unsure = 3
    messages: list[str] = []
    with connect() as server:
        server.wait_for(AccessRequirements(permissions()), 300, is_new=True, log=messages.append, sleep=lambda _: None)
    assert [message.partition(": ")[2][:10] for message in messages] == ["an answer:"]
    assert "does not accept the token" in messages[0]


def test_a_new_server_whose_name_is_not_known_yet_is_waited_for_to_the_end(connect: Connect) -> None:
    now = iter(range(0, 1000, 100))
    with (
        connect(server="http://127.0.0.1:1") as server,
        pytest.raises(ClusterNotReadyError, match=r"an answer: .*cannot be reached"),
    ):
        server.wait_for(
            AccessRequirements(permissions()), 300, is_new=True, clock=lambda: next(now), sleep=lambda _: None
        )


def test_a_server_that_is_not_new_and_refuses_the_token_is_not_waited_for(connect: Connect, api: FakeApiServer) -> None:
    api.unsure = 1
    with connect() as server, pytest.raises(AccessError, match="does not accept the token"):
        server.wait_for(AccessRequirements(permissions()), 300, sleep=lambda _: pytest.fail("it waited"))


def test_a_timeout_reports_what_is_missing_for_whom_and_the_fix(connect: Connect, api: FakeApiServer) -> None:
    api.denied = {"patch deployments", "list pods"}
    now = iter(range(0, 1000, 100))
    with connect() as server, pytest.raises(ClusterNotReadyError) as caught:
        server.wait_for(AccessRequirements(permissions()), 300, clock=lambda: next(now), sleep=lambda _: None)
    text = str(caught.value)
    assert "still lacks after 300 s: permissions: patch deployments.apps, list pods" in text
    assert (
        "give deployer-object-id (an object id, not an application id) the roles that `.venv/bin/idstack rbac" in text
    )


def test_the_hint_names_what_brings_each_missing_kind(connect: Connect, api: FakeApiServer) -> None:
    api.absent = {CLASSES, AZURE_CLUSTER_IDENTITIES.version, "example.com/v1"}
    required = (SECRET_PROVIDER_CLASSES, AZURE_CLUSTER_IDENTITIES, CustomKind("example.com/v1", "widgets"))
    with connect() as server:
        assert server.missing(AccessRequirements((), required)) == [
            f"kinds: secretproviderclasses.{CLASSES}, "
            "azureclusteridentities.infrastructure.cluster.x-k8s.io/v1beta1, widgets.example.com/v1"
        ]
        assert server.hint == (
            "Kinds: secretproviderclasses come with the add-on azure-keyvault-secrets-provider; "
            "azureclusteridentities come with `hypershift install --install-scope=crds --limit-crd-install=Azure`; "
            "widgets come with what defines them"
        )


@pytest.mark.parametrize(("has_azure_rbac", "reason"), [(True, ""), (True, VERDICT), (False, VERDICT)])
def test_with_azure_rbac_the_hint_is_the_role_assignment_command(
    connect: Connect, api: FakeApiServer, has_azure_rbac: bool, reason: str
) -> None:
    """Whether ARM reported it, or the refusal alone."""
    api.denied, api.reason = {"create namespaces", "patch deployments"}, reason
    with connect(has_azure_rbac=has_azure_rbac) as server:
        assert server.missing(AccessRequirements(permissions()))
        assert (
            "`az role assignment create --role b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b "
            f"--scope {CLUSTER} --assignee-object-id deployer-object-id --assignee-principal-type ServicePrincipal`"
        ) in server.hint
        assert "idstack rbac" not in server.hint

        api.denied = {"patch deployments"}
        server.missing(AccessRequirements(permissions()))
        assert "--role 3498e952-d568-435e-9b2c-8d77e338d7f7 " in server.hint


@pytest.mark.parametrize(
    ("has_azure_rbac", "hint"),
    [
        (True, "--assignee-object-id ada --assignee-principal-type User`"),
        (False, "`.venv/bin/idstack rbac <object id of a group of theirs>` prints"),
    ],
)
def test_a_persons_role_is_assigned_to_a_user_or_to_a_group(
    connect: Connect, api: FakeApiServer, tmp_path: Path, has_azure_rbac: bool, hint: str
) -> None:
    api.denied, api.token = {"create namespaces"}, unsigned(aud=AKS, tid=TENANT, oid="ada", idtyp="user")
    folder = program(tmp_path / "person", token=api.token)
    with connect(has_azure_rbac=has_azure_rbac, path=str(folder)) as server:
        server.missing(AccessRequirements(permissions()))
        assert hint in server.hint


def test_a_refusal_of_kubernetes_own_rbac_is_none_of_azures(connect: Connect, api: FakeApiServer) -> None:
    api.denied, api.reason = {"create namespaces"}, 'RBAC: clusterrole "idstack:deployer" not found'
    with connect() as server:
        server.missing(AccessRequirements(permissions()))
        assert f"`.venv/bin/idstack rbac {server.who} --principal-type ServicePrincipal` prints" in server.hint
        assert "az role" not in server.hint


def test_what_is_not_there_everywhere_is_asked_for_where_it_is_needed(connect: Connect, api: FakeApiServer) -> None:
    api.denied, api.allowed_in = {"get secrets", "delete namespaces", "list pods"}, {"one"}
    wanted = (
        Permission("", "pods", "watch", "two"),
        Permission("", "namespaces", "delete", name="one"),
        *(Permission("", "secrets", "get", place, "azure-cloud-config") for place in ("one", "two")),
    )
    with connect() as server:
        missing = server.missing(AccessRequirements(wanted))

    assert missing == ["permissions: get secrets azure-cloud-config in two"]
    assert sorted(api.reviews) == ["delete namespaces"] * 2 + ["get secrets"] * 3 + ["watch pods"]


def test_the_deployers_role_has_the_verbs_that_are_asked_for_and_no_more(api: FakeApiServer, connect: Connect) -> None:
    role, binding = cluster_wide_manifests(group="11111111-0000-4000-8000-000000000001")
    with connect() as server:
        assert server.missing(AccessRequirements(permissions())) == []
    granted = set(granted_by([role, binding]))
    assert granted == set(permissions())
    assert len(api.reviews) == len(granted)
    assert "*" not in {
        part for permission in granted for part in (permission.group, permission.resource, permission.verb)
    }
    assert binding["subjects"] == [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "11111111-0000-4000-8000-000000000001"}
    ]
