"""A real kube-apiserver that trusts the local Entra ID, with RBAC on: by idstack, by kubelogin, by a person."""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from identity.aks.sign_in import claims_of
from identity.credentials.certificate import issue
from localcloud.testing.azure import LocalAzure, Resources, assemble
from localcloud.testing.faults import NO_DELAYS
from localcloud.testing.running import StateDirectory
from tests.harness import LocalStack
from tools import golang

AKS = "6dae42f8-4368-4678-94ff-3960e28e3630"
AKS_CLIENT = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"
MOST_GROUPS = 200
PODS = "/default/pods"
CLUSTER = (
    "/subscriptions/10ca1000-0000-4000-8000-000000000002/resourceGroups/aks-local/providers/"
    "Microsoft.ContainerService/managedClusters/aks-mgmt-local"
)
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
DEPLOYERS = "10ca1000-0000-4000-8000-000000000003"
DEVELOPER = "developer@idstack.local"


@pytest.fixture(scope="module")
def azure(stack: LocalStack) -> Iterator[LocalAzure]:
    """The stack's own tenant, to make principals and tokens in that no client could ask for."""
    store = StateDirectory(stack.state).open_store()
    yield assemble(store, NO_DELAYS, authority_host=stack.environment.authority_host)
    store.close()


@pytest.fixture(scope="module")
def http(stack: LocalStack) -> Iterator[httpx.Client]:
    """The API server and Entra ID, without a sign-in."""
    trust = ssl.create_default_context(cafile=stack.environment.ca_file)
    with httpx.Client(verify=trust, timeout=30, trust_env=False) as client:
        yield client


def namespaces(stack: LocalStack, http: httpx.Client, token: str, below: str = "") -> httpx.Response:
    url = f"{stack.environment.kubernetes_endpoint}/api/v1/namespaces{below}"
    return http.get(url, headers={"Authorization": f"Bearer {token}"})


def whoami(stack: LocalStack, http: httpx.Client, token: str) -> dict[str, Any]:
    url = f"{stack.environment.kubernetes_endpoint}/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = http.post(url, json={}, headers={"Authorization": f"Bearer {token}"})
    return dict(answer.raise_for_status().json())


def test_the_stack_was_made_with_a_token_that_nobody_typed(stack: LocalStack) -> None:
    exported = json.loads(stack.pulumi("stack", "export", "--show-secrets").stdout)
    [provider] = [
        resource
        for resource in exported["deployment"]["resources"]
        if resource["type"].endswith("providers:kubernetes")
    ]
    kubeconfig = json.loads(json.loads(provider["inputs"]["kubeconfig"]["plaintext"]))
    [user] = kubeconfig["users"]
    assert user["user"].keys() == {"exec"}
    assert user["user"]["exec"]["args"][2:6] == ["token", "--exec", "--login", "arm"]
    assert "eyJ" not in json.dumps(user)


def test_the_stack_itself_goes_through_kubelogin_where_it_is_asked_to(
    stack: LocalStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = tmp_path / "calls"
    program = tmp_path / "kubelogin"
    program.write_text(f'#!/bin/sh\necho "$*" >> {calls}\nexec {golang.kubelogin()} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    cluster = stack.configuration("managementCluster")

    with stack.configured(managementCluster={**cluster, "access": {"flavour": "kubelogin"}}):
        stack.up()
        calls.unlink()
        # Without the program: nothing but the provider's kubeconfig leads to the cluster.
        stack.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes")
    made = set(calls.read_text().splitlines())
    stack.up()

    assert len(made) == 1, "the same arguments each time"
    assert made.pop().startswith("get-token --login spn --tenant-id")


@pytest.mark.parametrize("flavour", ["idstack", "kubelogin"])
def test_kubectl_signs_in_as_the_deployer_by_either_program(
    stack: LocalStack, kubectl: str, tmp_path: Path, flavour: str
) -> None:
    stack.idstack("kubeconfig", "--file", str(tmp_path / "config"), "--flavour", flavour)
    (tmp_path / "kubelogin").symlink_to(golang.kubelogin())
    other_authority = tmp_path / "authority.pem"
    other_authority.write_text(issue("x", not_before=datetime.now(UTC), lifetime=timedelta(days=1)).certificate_pem)
    # Nothing of the engine's environment, and variables that lead elsewhere.
    environment = {
        "PATH": f"{tmp_path}:{stack.variables['VIRTUAL_ENV']}/bin:{os.defpath}",
        "HOME": str(tmp_path),
        "AZURE_CLIENT_ID": AKS,
        "AZURE_TENANT_ID": AKS,
        "AAD_LOGIN_METHOD": "devicecode",
        "REQUESTS_CA_BUNDLE": str(other_authority),
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [kubectl, "--kubeconfig", str(tmp_path / "config"), *arguments]
        return subprocess.run(line, env=environment, capture_output=True, text=True, check=False)

    who = json.loads(run("auth", "whoami", "--output", "json").stdout)["status"]["userInfo"]
    assert DEPLOYERS in who["groups"]
    assert run("get", "namespaces").returncode == 0
    refused = run("get", "nodes")
    assert refused.returncode == 1
    assert f'User "{who["username"]}" cannot list resource "nodes"' in refused.stderr


def test_kube_apiserver_verifies_tokens_itself_and_names_their_owner(
    stack: LocalStack, azure: LocalAzure, http: httpx.Client
) -> None:
    deployer = azure.directory.service_principal_by_app(stack.environment.deployer_client_id)
    developer = azure.people.user_by_name(DEVELOPER)
    assert deployer is not None
    assert developer is not None
    for token, name in (
        (azure.tokens.issue(deployer, AKS), deployer.object_id),
        (azure.tokens.issue_for_user(developer, AKS_CLIENT, AKS), DEVELOPER),
    ):
        who = whoami(stack, http, token)["status"]["userInfo"]
        assert who["username"] == name
        assert set(who["groups"]) == {DEPLOYERS, "system:authenticated"}
        assert "oid" not in who.get("extra", {}), "what the webhook would have added"


def test_somebody_in_no_bound_group_is_recognised_and_refused(
    stack: LocalStack, azure: LocalAzure, http: httpx.Client
) -> None:
    stranger = azure.directory.create_service_principal(azure.directory.create_application("stranger").app_id)
    refused = namespaces(stack, http, azure.tokens.issue(stranger, AKS))
    assert refused.status_code == 403
    assert f'User \\"{stranger.object_id}\\"' in refused.text


def test_a_token_for_another_audience_or_an_expired_one_is_refused(
    stack: LocalStack, azure: LocalAzure, http: httpx.Client
) -> None:
    deployer = azure.directory.service_principal_by_app(stack.environment.deployer_client_id)
    assert deployer is not None
    assert namespaces(stack, http, azure.tokens.issue(deployer, AKS)).status_code == 200
    for wrong in (
        azure.tokens.issue(deployer, "https://management.azure.com"),
        azure.tokens.issue(deployer, AKS, lifetime=timedelta(seconds=-30)),
    ):
        assert namespaces(stack, http, wrong).status_code == 401


@pytest.fixture
def in_too_many_groups(azure: LocalAzure, administrator: httpx.Client) -> Iterator[Callable[[str], str]]:
    """Puts somebody into one group more than a token holds; in `default` that one may list pods. Gives its name."""
    made: list[str] = []

    def put(object_id: str) -> str:
        with azure.store.transaction():
            first, *_ = (azure.people.create_group(f"many-{number}", [object_id]) for number in range(MOST_GROUPS + 1))
        role = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]}
        binding = {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": first},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": first}],
        }
        for plural, body in (("roles", role), ("rolebindings", binding)):
            administrator.post(f"{RBAC}/{plural}", json={"metadata": {"name": first}, **body}).raise_for_status()
            made.append(f"{RBAC}/{plural}/{first}")
        return first

    yield put
    for path in made:
        administrator.delete(path).raise_for_status()


def test_the_groups_of_a_person_with_too_many_for_a_token_are_resolved(
    stack: LocalStack, azure: LocalAzure, http: httpx.Client, in_too_many_groups: Callable[[str], str]
) -> None:
    person = azure.people.create_user("many@idstack.local", "In many groups")
    group = in_too_many_groups(person.object_id)
    token = azure.tokens.issue_for_user(person, AKS_CLIENT, AKS)
    assert claims_of(token)["_claim_names"] == {"groups": "src1"}

    signed_in = whoami(stack, http, token)["status"]["userInfo"]

    assert signed_in["username"] == "many@idstack.local"
    assert signed_in["extra"]["oid"] == [person.object_id]
    assert group in signed_in["groups"]
    assert len(signed_in["groups"]) == MOST_GROUPS + 1 + len(["system:authenticated"])
    assert namespaces(stack, http, token, PODS).status_code == 200
    assert namespaces(stack, http, token).status_code == 403


def test_an_application_in_too_many_groups_gets_401_and_a_reason_in_the_log(
    stack: LocalStack, azure: LocalAzure, http: httpx.Client, in_too_many_groups: Callable[[str], str]
) -> None:
    application = azure.directory.create_service_principal(azure.directory.create_application("many").app_id)
    in_too_many_groups(application.object_id)

    refused = namespaces(stack, http, azure.tokens.issue(application, AKS), PODS)

    assert refused.status_code == 401
    assert refused.json()["message"] == "Unauthorized"
    log = StateDirectory(stack.state).log("kube-apiserver").read_text(errors="replace")
    assert "service principal with group membership exceeding 200 is not supported" in log


def test_doctor_finds_nothing_where_the_deployers_group_is_bound(stack: LocalStack, azure: LocalAzure) -> None:
    done = stack.idstack("doctor", "--stage", "access")
    assert "nothing is broken" in done.stdout
    groups = azure.people.groups_of(json.loads(_whoami(stack))["oid"])
    assert groups == [DEPLOYERS]


def test_doctor_names_missing_verbs_and_how_to_get_them(
    stack: LocalStack, azure: LocalAzure, administrator: httpx.Client
) -> None:
    clusters = Resources(azure.store)
    cluster = clusters.get(CLUSTER)
    assert cluster is not None
    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    role = administrator.get(f"{binding}/idstack:deployer").raise_for_status().json()
    bound = {**role, "metadata": {"name": role["metadata"]["name"]}}
    administrator.delete(f"{binding}/idstack:deployer").raise_for_status()
    try:
        said = " ".join(stack.idstack("doctor", "--stage", "access", check=False).stdout.split())
        profile = {**cluster["properties"]["aadProfile"], "enableAzureRBAC": True}
        clusters.put({**cluster, "properties": {**cluster["properties"], "aadProfile": profile}})
        azures = " ".join(stack.idstack("doctor", "--stage", "access", check=False).stdout.split())
        assigned = stack.idstack("rbac", DEPLOYERS).stdout
    finally:
        clusters.put(cluster)
        administrator.post(binding, json=bound).raise_for_status()

    who = json.loads(_whoami(stack))["oid"]
    for message in (said, azures):
        assert "create namespaces" in message
        assert "patch secretproviderclasses.secrets-store.csi.x-k8s.io" in message
    assert f"give {who} (an object id, not an application id) the roles that" in said
    assert f"`.venv/bin/idstack rbac {who} --principal-type ServicePrincipal` prints" in said
    assert assigned == (
        f"az role assignment create --role b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b --scope {CLUSTER} "
        f"--assignee-object-id {DEPLOYERS} --assignee-principal-type Group\n"
    )
    assert (
        f"`az role assignment create --role b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b --scope {CLUSTER} "
        f"--assignee-object-id {who} --assignee-principal-type ServicePrincipal`"
    ) in azures


def test_the_glass_is_broken_only_where_local_accounts_are_on_and_loudly(
    stack: LocalStack, azure: LocalAzure, kubectl: str, tmp_path: Path
) -> None:
    arguments = ("kubeconfig", "--admin", "--file", str(tmp_path / "admin"))
    refused = stack.idstack(*arguments, check=False)
    assert refused.returncode == 1
    assert "cluster is set to disable local accounts" in " ".join(refused.stderr.split())
    assert not (tmp_path / "admin").exists()

    clusters = Resources(azure.store)
    cluster = clusters.get(CLUSTER)
    assert cluster is not None
    clusters.put({**cluster, "properties": {**cluster["properties"], "disableLocalAccounts": False}})
    try:
        said = " ".join(stack.idstack(*arguments).stdout.split())
    finally:
        clusters.put(cluster)

    assert "without Entra ID, for years, and the audit log does not name its user. Delete it after use" in said
    nodes = stack.run(kubectl, "--kubeconfig", str(tmp_path / "admin"), "get", "nodes")
    assert nodes.returncode == 0, "what the deployer may not do"


def _whoami(stack: LocalStack) -> str:
    environment = stack.environment
    login = ("--login", "arm", "--tenant-id", environment.tenant_id, "--authority-host", environment.authority_host)
    return stack.idstack("token", *login, "--json").stdout


def test_a_person_signs_in_with_a_device_code_and_is_renewed_without_it(
    stack: LocalStack, http: httpx.Client, tmp_path: Path
) -> None:
    environment = stack.environment
    command = [
        *(str(Path(stack.variables["VIRTUAL_ENV"]) / "bin/idstack"), "token", "--exec", "--device-code"),
        *("--tenant-id", environment.tenant_id, "--authority-host", environment.authority_host),
        *("--cache-dir", str(tmp_path)),
    ]
    terminal, end = os.openpty()
    variables = {name: value for name, value in stack.variables.items() if name != "CI"}
    with subprocess.Popen(command, env=variables, stdin=end, stderr=end, stdout=subprocess.PIPE, text=True) as asking:
        said = ""
        while not (found := re.search(r"open the page (\S+) and enter the code (\w+)", said.replace("\r\n", " "))):
            said += os.read(terminal, 1000).decode()
        form = {"otc": found[2], "login": DEVELOPER, "action": "approve"}
        http.post(found[1], data=form).raise_for_status()
        answer = json.loads(asking.communicate(timeout=60)[0])
    os.close(terminal)
    os.close(end)
    token = answer["status"]["token"]
    assert claims_of(token)["upn"] == DEVELOPER
    assert namespaces(stack, http, token).status_code == 200

    for kept in tmp_path.glob("*.token"):
        kept.unlink()
    silent = stack.run(*command)
    renewed = json.loads(silent.stdout)["status"]["token"]
    assert renewed != token
    assert namespaces(stack, http, renewed).status_code == 200


def test_the_role_that_is_printed_is_the_one_that_kube_apiserver_takes(
    stack: LocalStack, kubectl: str, tmp_path: Path
) -> None:
    printed = stack.idstack("rbac", DEPLOYERS).stdout
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(printed))
    kinds = ["Namespace", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]
    assert sorted(document["kind"] for document in documents) == sorted(kinds)
    file = tmp_path / "role.yaml"
    file.write_text(printed)
    administrator = str(StateDirectory(stack.state).administrator_kubeconfig)
    applied = stack.run(
        *(kubectl, "--kubeconfig", administrator, "apply", "--server-side", "--force-conflicts"),
        *("--dry-run=server", "--validate=strict", "-f", str(file)),
    )
    assert "idstack:deployer" in applied.stdout
