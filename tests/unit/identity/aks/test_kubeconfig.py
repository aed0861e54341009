"""Kubeconfigs of three generations read, converted, merged and written."""

from __future__ import annotations

import copy
import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from identity.aks.exec_user import exec_user
from identity.aks.kubeconfig import Kubeconfig, MalformedKubeconfigError, add_context, usual_kubeconfigs
from identity.aks.legacy_login import LegacyLogin, is_convertible, legacy_login_of
from identity.aks.login import Login
from identity.azure.errors import AccessError, LoginRefusedError
from identity.login_kinds import Flavour, LoginKind
from tests.unit import cases

TENANT = "99999999-8888-4777-8666-555555555555"
CLIENT = "6f2c1e7a-0000-4000-8000-00000000bbbb"
AKS = "6dae42f8-4368-4678-94ff-3960e28e3630"
TABLE = cases.read(Path(__file__).with_name("kubeconfig.yaml"), {"AKS": AKS, "TENANT": TENANT})
LEGACY: dict[str, Any] = TABLE["legacy"]


def document(**user: Any) -> dict[str, Any]:
    return {**copy.deepcopy(TABLE["document"]), "users": [{"name": "u", "user": user}]}


def parsed(**user: Any) -> Kubeconfig:
    return Kubeconfig.parse(yaml.safe_dump(document(**user)), "kubeconfig")


def test_a_legacy_auth_provider_is_converted_without_its_tokens() -> None:
    legacy = parsed(**{"auth-provider": LEGACY})
    user = legacy.entries("users")["u"]
    assert is_convertible(user)
    assert legacy_login_of(user, "u") == LegacyLogin(TENANT, AKS, "https://login.microsoftonline.com/")

    login = Login(kind=LoginKind.ARM, tenant_id=TENANT)
    text = legacy.only("mgmt", user=exec_user(login, Flavour.IDSTACK)).to_json()

    assert "token" not in text.replace('"token","--exec"', "")
    assert json.loads(text)["clusters"] == document()["clusters"], "server and authority exist nowhere else"


def test_a_legacy_cluster_with_its_own_applications_is_refused() -> None:
    config = {**LEGACY["config"], "apiserver-id": CLIENT, "config-mode": "0"}
    with pytest.raises(MalformedKubeconfigError, match=r"no service principal can sign in.*az aks update --enable-aad"):
        legacy_login_of({"auth-provider": {"name": "azure", "config": config}}, "u")


@pytest.mark.parametrize(
    ("environment", "host"),
    [
        ("AzureUSGovernmentCloud", "https://login.microsoftonline.us/"),
        ("azureusgovernment", "https://login.microsoftonline.us/"),
        ("AzureChinaCloud", "https://login.chinacloudapi.cn/"),
    ],
)
def test_a_sovereign_clouds_authority_is_taken_over_from_either_generation(environment: str, host: str) -> None:
    arguments = ["get-token", "--environment", environment, "--server-id", AKS, "--tenant-id", TENANT]
    provider = {"name": "azure", "config": {"environment": environment, "tenant-id": TENANT}}
    assert legacy_login_of({"exec": {"command": "kubelogin", "args": arguments}}, "u").authority_host == host
    assert legacy_login_of({"auth-provider": provider}, "u").authority_host == host


@pytest.mark.parametrize("environment", ["AzureStackCloud", "AzureGermanCloud", "public"])
def test_an_unknown_cloud_is_refused_instead_of_taken_for_the_public_one(environment: str) -> None:
    with pytest.raises(MalformedKubeconfigError, match=f'"{environment}"; accepted are AzurePublicCloud'):
        legacy_login_of({"exec": {"command": "kubelogin", "args": ["get-token", "-e", environment]}}, "u")


@pytest.mark.parametrize(
    "user",
    [
        {"exec": {"command": "aws"}},
        {"exec": {"command": "kubelogin", "args": ["get-token", "--oidc-issuer-url=https://issuer.example"]}},
        {"exec": {"command": "kubectl", "args": ["oidc-login", "get-token"]}},
        {"exec": {}},
        {"auth-provider": {"name": "gcp"}},
        {"token": "t"},
        {"client-certificate-data": "Yw=="},
        {},
    ],
    ids=str,
)
def test_other_users_are_not_ours_to_convert(user: dict[str, Any]) -> None:
    assert not is_convertible(user)
    for command in ("/usr/local/bin/kubelogin", "kubelogin.exe", r"C:\Users\me\kubelogin.exe", "./Kubelogin.EXE"):
        assert is_convertible({"exec": {"command": command, "args": ["get-token", "--server-id", AKS]}})


@pytest.mark.parametrize(
    "arguments",
    [
        ["--tenant-id", TENANT, "--server-id", CLIENT, "-e", "AzureChinaCloud"],
        [f"--tenant-id={TENANT}", f"--server-id={CLIENT}", "--environment=AzureChinaCloud"],
        [f"-t={TENANT}", "--login", "spn", "--server-id", CLIENT, "-eAzureChinaCloud"],
        ["--legacy=false", "--pop-enabled=false", "--tenant-id", TENANT, "--server-id", CLIENT, "-e=AzureChinaCloud"],
        ["--disable-environment-override", "-t", TENANT, f"--server-id={CLIENT}", "-e", "azurechinacloud"],
    ],
    ids=" ".join,
)
def test_kubelogins_options_are_read_in_every_form(arguments: list[str]) -> None:
    found = legacy_login_of({"exec": {"command": "kubelogin", "args": ["get-token", *arguments]}}, "u")
    assert found == LegacyLogin(TENANT, CLIENT, "https://login.chinacloudapi.cn/")


def test_the_tenant_of_a_blocks_own_variable_goes_first_unless_it_is_not_read() -> None:
    block = {"command": "kubelogin", "args": ["-t", CLIENT], "env": [{"name": "AZURE_TENANT_ID", "value": TENANT}]}
    assert legacy_login_of({"exec": block}, "u").tenant_id == TENANT
    block["args"] = ["-t", CLIENT, "--disable-environment-override"]
    assert legacy_login_of({"exec": block}, "u").tenant_id == CLIENT


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--pop-enabled", "proof-of-possession"),
        ("--pop-enabled=T", "proof-of-possession"),
        ("--legacy", "az aks update --enable-aad"),
        ("--tenant-id", "expected one argument"),
    ],
)
def test_a_login_that_cannot_be_carried_over_is_refused(argument: str, message: str) -> None:
    block = {"command": "kubelogin", "args": ["get-token", "--server-id", AKS, argument]}
    with pytest.raises(MalformedKubeconfigError, match=message):
        legacy_login_of({"exec": block}, "u")


def test_merging_keeps_everything_that_has_another_name(tmp_path: Path) -> None:
    file = tmp_path / "config"
    existing = document(token="of-another")
    for section, member in (("clusters", "cluster"), ("contexts", "context"), ("users", "user")):
        existing[section][0]["name"] = f"other-{member}"
    existing["preferences"] = {"colors": True}
    file.write_text(yaml.safe_dump(existing))

    assert add_context((file,), parsed(token="new")) == [file]

    merged = yaml.safe_load(file.read_text())
    assert [context["name"] for context in merged["contexts"]] == ["other-context", "mgmt"]
    assert merged["users"][0] == {"name": "other-user", "user": {"token": "of-another"}}
    assert (merged["current-context"], merged["preferences"]) == ("mgmt", {"colors": True})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_is_replaced_in_one_step_and_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("")
    link.symlink_to(real)
    add_context((link,), parsed(token="t"))
    assert link.is_symlink()
    assert yaml.safe_load(real.read_text())["current-context"] == "mgmt"
    assert {path.name for path in tmp_path.iterdir()} == {"real", "link"}


def test_the_usual_files_are_those_of_kubectl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert usual_kubeconfigs({}) == usual_kubeconfigs({"KUBECONFIG": ":"}) == (tmp_path / ".kube/config",)
    assert usual_kubeconfigs({"KUBECONFIG": "a::b:a"}) == (Path("a"), Path("b"))


def test_an_entry_replaces_the_one_that_another_file_would_hide(tmp_path: Path) -> None:
    files = tmp_path / "none", tmp_path / "first", tmp_path / "second"
    files[1].write_text(yaml.safe_dump({**document(token="t"), "users": []}))
    files[2].write_text(yaml.safe_dump(document(token="old")))

    add_context(files, parsed(token="new"))

    assert not files[0].exists()
    assert yaml.safe_load(files[1].read_text())["users"] == []
    assert yaml.safe_load(files[2].read_text())["users"][0]["user"] == {"token": "new"}


def test_paths_stay_right_in_another_directory(tmp_path: Path) -> None:
    source, target = tmp_path / "old" / "config", tmp_path / "new" / "config"
    for file, name in ((source, "mgmt"), (target, "other")):
        file.parent.mkdir()
        entry = {"name": name, "cluster": {"server": "https://a", "certificate-authority": "pki/ca.crt"}}
        file.write_text(yaml.safe_dump({**document(tokenFile="token"), "clusters": [entry]}))

    found = Kubeconfig.read(source)
    assert found.entries("users")["u"] == {"tokenFile": str(tmp_path / "old/token")}
    add_context((target,), found.only("mgmt", user={"exec": {"command": "kubelogin"}}))

    clusters = {cluster["name"]: cluster["cluster"] for cluster in yaml.safe_load(target.read_text())["clusters"]}
    assert clusters["other"]["certificate-authority"] == "pki/ca.crt", "it is relative to this file already"
    assert clusters["mgmt"]["certificate-authority"] == str(tmp_path / "old/pki/ca.crt")


def test_a_kubeconfig_is_flattened_for_readers_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "config"
    (tmp_path / "ca.crt").write_text("CA")
    (tmp_path / "me.crt").write_text("CERT")
    cluster = {"server": "https://a", "certificate-authority": "ca.crt"}
    user = {"client-certificate": "me.crt", "client-key": "/etc/me.key", "tokenFile": "token"}
    file.write_text(yaml.safe_dump({**document(**user), "clusters": [{"name": "mgmt", "cluster": cluster}]}))

    found = Kubeconfig.read(file).flattened()

    assert found.entries("clusters")["mgmt"] == {"server": "https://a", "certificate-authority-data": "Q0E="}
    assert found.entries("users")["u"] == {
        "client-certificate-data": "Q0VSVA==",
        "client-key": "/etc/me.key",
        "tokenFile": str(tmp_path / "token"),
    }
    assert found.flattened() is found
    (tmp_path / "ca.crt").unlink()
    with pytest.raises(AccessError, match=r"ca\.crt cannot be read"):
        Kubeconfig.read(file).flattened()


def test_a_file_that_kubectl_writes_is_waited_for(tmp_path: Path) -> None:
    file, lock = tmp_path / "config", tmp_path / "config.lock"
    lock.touch()
    with pytest.raises(MalformedKubeconfigError, match=f"another program.*nothing was changed.*rm {lock}"):
        add_context((file,), parsed(token="t"), patience=0)
    assert not file.exists()

    add_context((file,), parsed(token="t"), sleep=lambda _: lock.unlink())
    assert file.exists()
    assert not lock.exists()


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "config"

    def write(number: int) -> None:
        add_context((file,), Kubeconfig({"users": [{"name": f"u{number}", "user": {"token": "t"}}]}, "one"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))

    assert {user["name"] for user in yaml.safe_load(file.read_text())["users"]} == {f"u{number}" for number in range(8)}


MALFORMED = cases.read(Path(__file__).with_name("malformed-kubeconfigs.yaml"), {})


@pytest.mark.parametrize("message", MALFORMED)
def test_a_malformed_kubeconfig_is_named_with_what_is_wrong(message: str) -> None:
    with pytest.raises(MalformedKubeconfigError, match=f"^here.*{message}"):
        Kubeconfig.parse(MALFORMED[message], "here").chosen()
    with pytest.raises(MalformedKubeconfigError, match='no context "prod"; it has mgmt'):
        parsed().chosen("prod")


def test_the_same_login_makes_the_same_string_in_any_order() -> None:
    user = exec_user(Login(kind=LoginKind.ARM, tenant_id=TENANT), Flavour.IDSTACK, {"B": "2", "A": "1"})
    shuffled = Kubeconfig.parse(yaml.safe_dump(dict(reversed(document().items())), sort_keys=False), "x")
    assert parsed().only("mgmt", user=user).to_json() == shuffled.only("mgmt", user=user).to_json()


def test_only_a_project_with_an_environment_goes_without_a_command_on_path(tmp_path: Path) -> None:
    login = Login(kind=LoginKind.ARM, tenant_id=TENANT)
    bare = exec_user(login, Flavour.IDSTACK, project=tmp_path)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").touch()
    own = exec_user(login, Flavour.IDSTACK, project=tmp_path)["exec"]

    assert bare == exec_user(login, Flavour.IDSTACK)
    assert (own["command"], own["args"][-len(bare["exec"]["args"]) :]) == (".venv/bin/python", bare["exec"]["args"])


ALONE = "--disable-environment-override"
LOGINS: dict[str, tuple[Login, str]] = {
    "arm": (Login(kind=LoginKind.ARM, tenant_id=TENANT), f"spn --tenant-id {TENANT} --use-azurerm-env-vars"),
    "certificate": (
        Login(kind=LoginKind.CERTIFICATE, tenant_id=TENANT, client_id=CLIENT, certificate=Path("c.pem")),
        f"spn --tenant-id {TENANT} --client-id {CLIENT} --client-certificate c.pem {ALONE}",
    ),
    "workload identity": (
        Login(kind=LoginKind.WORKLOAD_IDENTITY, tenant_id=TENANT, client_id=CLIENT, federated_token_file=Path("token")),
        f"workloadidentity --tenant-id {TENANT} --client-id {CLIENT} --federated-token-file token {ALONE}",
    ),
    "github": (
        Login(kind=LoginKind.GITHUB, tenant_id=TENANT, client_id=CLIENT),
        f"workloadidentity --tenant-id {TENANT} --client-id {CLIENT} {ALONE}",
    ),
    "managed identity": (Login(kind=LoginKind.MANAGED_IDENTITY, client_id=CLIENT), f"msi --client-id {CLIENT} {ALONE}"),
    "azure cli": (Login(kind=LoginKind.AZURE_CLI, tenant_id=TENANT), f"azurecli --tenant-id {TENANT} --timeout 120s"),
    "device code": (
        Login(kind=LoginKind.DEVICE_CODE, tenant_id=TENANT),
        f"devicecode --tenant-id {TENANT} --client-id 80faf920-1908-4b52-b5ef-a8e7bedfc67a {ALONE}",
    ),
}


@pytest.mark.parametrize("name", LOGINS)
def test_kubelogin_gets_the_arguments_that_no_stray_variable_overrides(name: str) -> None:
    login, arguments = LOGINS[name]
    block = exec_user(login, Flavour.KUBELOGIN)["exec"]
    assert block["args"] == ["get-token", "--login", *arguments.split(), "--server-id", AKS]
    assert block["command"] == "kubelogin"


@pytest.mark.parametrize("name", LOGINS)
@pytest.mark.parametrize("flavour", list(Flavour))
def test_nobody_is_prompted_unless_the_login_is_a_persons(name: str, flavour: Flavour) -> None:
    block = exec_user(LOGINS[name][0], flavour)["exec"]
    assert block["interactiveMode"] == ("IfAvailable" if name == "device code" else "Never")
    assert block["apiVersion"] == "client.authentication.k8s.io/v1"


def test_kubelogin_gets_another_cloud_or_a_private_authority() -> None:
    government = Login(kind=LoginKind.ARM, tenant_id=TENANT, authority_host="https://login.microsoftonline.us/")
    assert exec_user(government, Flavour.KUBELOGIN)["exec"]["args"][-2:] == ["--environment", "AzureUSGovernmentCloud"]
    private = Login(kind=LoginKind.ARM, tenant_id=TENANT, authority_host="https://127.0.0.1:1")
    tail = ["--authority-host", "https://127.0.0.1:1/", "--disable-instance-discovery"]
    assert exec_user(private, Flavour.KUBELOGIN)["exec"]["args"][-3:] == tail


@pytest.mark.parametrize(
    ("login", "message"),
    [
        (
            Login(kind=LoginKind.SECRET, tenant_id=TENANT, client_id=CLIENT, client_secret_file=Path("s")),
            "would need the secret in its arguments",
        ),
        (Login(kind=LoginKind.CERTIFICATE, certificate=Path("credential.json")), "cannot read a credential document"),
    ],
)
def test_what_kubelogin_cannot_do_is_reported_before_it_fails(login: Login, message: str) -> None:
    with pytest.raises(LoginRefusedError, match=message):
        exec_user(login, Flavour.KUBELOGIN)
