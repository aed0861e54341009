"""`idstack kubeconfig` on files, and `idstack doctor` and it on a stack whose AKS and Entra ID answer."""

from __future__ import annotations

import io
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.ops.conftest import Idstack

TENANT = "99999999-8888-4777-8666-555555555555"
AKS = "6dae42f8-4368-4678-94ff-3960e28e3630"


LEGACY = f"""\
apiVersion: v1
kind: Config
clusters:
  - {{name: c, cluster: {{server: "https://c"}}}}
contexts:
  - {{name: aks, context: {{cluster: c, user: u}}}}
  - {{name: aws, context: {{cluster: c, user: eks}}}}
users:
  - name: u
    user:
      auth-provider:
        name: azure
        config: {{apiserver-id: {AKS}, tenant-id: {TENANT}, environment: AzureChinaCloud, access-token: old}}
  - {{name: eks, user: {{exec: {{command: aws}}}}}}
current-context: aks
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    file = tmp_path / "old.yaml"
    file.write_text(LEGACY)
    return file


def test_an_old_kubeconfig_is_converted_into_a_file_of_its_own(idstack: Idstack, old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    done = idstack("kubeconfig", "--from", str(old), "--file", str(new), "--login", "azure-cli")

    assert (done.code, done.output) == (0, f'context "aks" written to {new}\n')
    written = yaml.safe_load(new.read_text())
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    assert [context["name"] for context in written["contexts"]] == ["aks"]
    block = written["users"][0]["user"]["exec"]
    assert block["args"] == [
        *("token", "--exec", "--login", "azure-cli", "--tenant-id", TENANT, "--server-id", AKS),
        *("--authority-host", "https://login.chinacloudapi.cn/"),
    ]
    assert "old" not in new.read_text()
    printed = idstack("kubeconfig", "--from", str(old), "--file", "-", "--login", "azure-cli")
    assert (printed.code, yaml.safe_load(printed.output), printed.error) == (0, written, "")
    idstack("kubeconfig", "--from", str(old), "--file", str(old), "--flavour", "kubelogin")
    converted = yaml.safe_load(old.read_text())
    assert [context["name"] for context in converted["contexts"]] == ["aks", "aws"], "what it had otherwise stays"
    assert converted["users"][0]["user"]["exec"]["command"] == "kubelogin"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--context", "aws"], 'user "eks" signs in by exec, not to AKS by Entra ID; nothing was changed'),
        (["--context", "x"], 'has no context "x"; it has aks, aws'),
        (["--login", "secret"], "needs --client-id and --client-secret-file as well"),
    ],
)
def test_what_cannot_be_converted_leaves_the_file_as_it_is(
    idstack: Idstack, old: Path, options: list[str], error: str
) -> None:
    before = old.read_bytes()
    done = idstack("kubeconfig", "--from", str(old), "--file", str(old), *options)
    assert done.code == 1
    assert error in done.error
    assert old.read_bytes() == before


def foreign(tmp_path: Path, host: str, server_id: str = AKS, **cluster: Any) -> Path:
    """A kubeconfig of somebody else's, whose user signs in at this host for this server."""
    document = yaml.safe_load(LEGACY)
    document["clusters"][0]["cluster"] |= cluster
    options = ["--tenant-id", TENANT, "--server-id", server_id, "--authority-host", host]
    arguments = ["get-token", "--login", "spn", *options]
    document["users"][0]["user"] = {"exec": {"command": "kubelogin", "args": arguments}}
    file = tmp_path / "foreign.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


HOSTS = [
    "https://evil.example/",
    "https://login.microsoftonline.com.evil.example/",
    "https://login.microsoftonline.com@evil.example/",
    "http://login.microsoftonline.com/",
    "https://login.microsoftonline.com:8443/",
]


@pytest.mark.parametrize("host", HOSTS)
def test_an_unknown_authority_of_a_file_is_refused_without_a_person(
    idstack: Idstack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    source, new = foreign(tmp_path, host), tmp_path / "new.yaml"
    monkeypatch.setattr("sys.stdin", io.StringIO())
    done = idstack("kubeconfig", "--from", str(source), "--file", str(new), "--login", "azure-cli")

    assert (done.code, new.exists()) == (1, False)
    assert f'signs in at "{host}", which is not an authority host of Azure' in done.error
    assert done.error.endswith(f"If it is yours, name it: --authority-host {host}\n")


VAULT = "https://vault.azure.net"
DOUBTS: list[tuple[dict[str, Any], str]] = [
    ({"host": HOSTS[0]}, "which is not an authority host of Azure"),
    ({"server_id": VAULT}, f'asks for tokens for "{VAULT}", which is not AKS: https://c would get them'),
    ({"insecure-skip-tls-verify": True}, "does not verify the certificate of https://c"),
    ({"proxy-url": "http://proxy.example"}, 'sends every request by the proxy "http://proxy.example"'),
]


@pytest.mark.parametrize(("changes", "said"), DOUBTS, ids=["authority", "audience", "certificate", "proxy"])
@pytest.mark.parametrize(("answer", "written"), [("y\n", True), ("n\n", False), (None, False)])
def test_who_would_get_a_token_is_asked_and_refused_to_a_script(
    idstack: Idstack,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    said: str,
    answer: str | None,
    written: bool,
) -> None:
    source, new = foreign(tmp_path, **{"host": "https://login.microsoftonline.com/", **changes}), tmp_path / "new.yaml"
    standard_input = io.StringIO(answer or "")
    monkeypatch.setattr(standard_input, "isatty", lambda: answer is not None)
    monkeypatch.setattr("sys.stdin", standard_input)

    done = idstack("kubeconfig", "--from", str(source), "--file", str(new), "--login", "azure-cli")

    assert (done.code == 0, new.exists()) == (written, written)
    assert said in done.error


@pytest.mark.parametrize(
    ("host", "options", "expected"),
    [
        ("https://login.microsoftonline.us", [], "https://login.microsoftonline.us"),
        (HOSTS[0], ["--authority-host", HOSTS[0]], HOSTS[0]),
        (HOSTS[0], ["--authority-host", "https://login.chinacloudapi.cn/"], "https://login.chinacloudapi.cn/"),
    ],
)
def test_a_known_authority_or_one_that_is_named_is_taken_as_a_named_server_is(
    idstack: Idstack, tmp_path: Path, host: str, options: list[str], expected: str
) -> None:
    source, new = foreign(tmp_path, host, VAULT), tmp_path / "new.yaml"
    options = [*options, "--server-id", VAULT]
    done = idstack("kubeconfig", "--from", str(source), "--file", str(new), "--login", "azure-cli", *options)

    assert done.code == 0, done.error
    block = yaml.safe_load(new.read_text())["users"][0]["user"]["exec"]
    assert block["args"][-2:] == ["--authority-host", expected]
