"""Kubeconfigs as kubectl reads them: both are pointed at one server, and what reaches it is compared."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from identity.aks.api_server import ApiServer
from identity.aks.azure_rbac import AksCluster
from identity.aks.kubeconfig import Kubeconfig, add_context
from identity.azure.errors import AccessError
from tests.apiserver.recording_server import EXEC, Server, server

__all__ = ["server"]

pytestmark = pytest.mark.apiserver

Change = Callable[[dict[str, Any], Server], object]


def user(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["users"][0]["user"]
    return found


def at(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["clusters"][0]["cluster"]
    return found


def by_exec(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    document["users"][0]["user"] = {"exec": {**EXEC, **changes}}
    return document


def presented(document: dict[str, Any], **files: str) -> None:
    document["users"][0]["user"] = files


KUBECONFIGS: dict[str, Change] = {
    "a token": lambda d, s: None,
    "a relative certificate-authority": lambda d, s: (
        at(d).pop("certificate-authority-data"),
        at(d).update({"certificate-authority": "ca.crt"}),
    ),
    "a certificate-authority that is not there": lambda d, s: (
        at(d).pop("certificate-authority-data"),
        at(d).update({"certificate-authority": "none.crt"}),
    ),
    "both forms of the authority": lambda d, s: at(d).update({"certificate-authority": "ca.crt"}),
    "an authority that is no PEM": lambda d, s: at(d).update({"certificate-authority-data": "bm9uZQ=="}),
    "no authority": lambda d, s: at(d).pop("certificate-authority-data"),
    "insecure-skip-tls-verify": lambda d, s: (
        at(d).pop("certificate-authority-data"),
        at(d).update({"insecure-skip-tls-verify": True, "server": f"https://127.0.0.1:{s.port}"}),
    ),
    "insecure-skip-tls-verify with an authority": lambda d, s: at(d).update({"insecure-skip-tls-verify": True}),
    "a server of another name": lambda d, s: at(d).update({"server": f"https://127.0.0.1:{s.port}"}),
    "tls-server-name": lambda d, s: at(d).update(
        {"server": f"https://127.0.0.1:{s.port}", "tls-server-name": "kubernetes.internal"}
    ),
    "a wrong tls-server-name": lambda d, s: at(d).update({"tls-server-name": "other.internal"}),
    "no scheme": lambda d, s: at(d).update({"server": f"localhost:{s.port}"}),
    "no server": lambda d, s: at(d).pop("server"),
    "proxy-url": lambda d, s: at(d).update(
        {"server": "https://kubernetes.internal", "proxy-url": f"http://127.0.0.1:{s.proxy_port}"}
    ),
    "proxy-url and tls-server-name": lambda d, s: at(d).update(
        {
            "server": "https://api.example",
            "tls-server-name": "kubernetes.internal",
            "proxy-url": f"http://127.0.0.1:{s.proxy_port}",
        }
    ),
    "a proxy-url of another scheme": lambda d, s: at(d).update({"proxy-url": "ftp://127.0.0.1:1"}),
    "tokenFile": lambda d, s: presented(d, tokenFile="token"),
    "a token that is no ASCII": lambda d, s: user(d).update(token="\u00e9"),
    "tokenFile beside token": lambda d, s: user(d).update({"tokenFile": "token"}),
    "an empty tokenFile beside token": lambda d, s: user(d).update({"tokenFile": "empty"}),
    "a tokenFile that is not there beside token": lambda d, s: user(d).update({"tokenFile": "none"}),
    "a tokenFile that is not there": lambda d, s: presented(d, tokenFile="none"),
    "client-certificate": lambda d, s: presented(d, **{"client-certificate": "me.crt", "client-key": "me.key"}),
    "client-certificate beside token": lambda d, s: user(d).update(
        {"client-certificate": "me.crt", "client-key": "me.key"}
    ),
    "client-certificate without a key": lambda d, s: presented(d, **{"client-certificate": "me.crt"}),
    "a client-key that is not there": lambda d, s: presented(
        d, **{"client-certificate": "me.crt", "client-key": "none"}
    ),
    "a key of another certificate": lambda d, s: presented(
        d, **{"client-certificate": "me.crt", "client-key": "inner.key"}
    ),
    "a password": lambda d, s: presented(d, username="me", password="p"),
    "a password beside token": lambda d, s: user(d).update(username="me"),
    "as": lambda d, s: user(d).update({"as": "jane", "as-groups": ["a", "b"], "as-user-extra": {"x": ["1"]}}),
    "as-groups without as": lambda d, s: user(d).update({"as-groups": ["a"]}),
    "a program's token": lambda d, s: (by_exec(d), s.plugin(token="printed")),
    "a program's certificate": lambda d, s: (
        by_exec(d),
        s.plugin(clientCertificateData=s.text("me.crt"), clientKeyData=s.text("me.key")),
    ),
    "a program's token and certificate": lambda d, s: (
        by_exec(d),
        s.plugin(token="t", clientCertificateData=s.text("me.crt"), clientKeyData=s.text("me.key")),
    ),
    "a program's certificate without a key": lambda d, s: (
        by_exec(d),
        s.plugin(clientCertificateData=s.text("me.crt")),
    ),
    "a program that prints nothing of use": lambda d, s: (by_exec(d), s.plugin()),
    "a program of another version": lambda d, s: (
        by_exec(d, apiVersion="client.authentication.k8s.io/v1beta1"),
        s.plugin(token="t"),
    ),
    "a program of v1alpha1": lambda d, s: by_exec(d, apiVersion="client.authentication.k8s.io/v1alpha1"),
    "a program without interactiveMode": lambda d, s: by_exec(d, interactiveMode=None),
    "a program without a command": lambda d, s: by_exec(d, command=""),
    "a program with a variable without a name": lambda d, s: by_exec(d, env=[{"value": "x"}]),
    "a program that wants a terminal": lambda d, s: by_exec(d, interactiveMode="Always"),
    "a program beside token": lambda d, s: user(d).update({"exec": {**EXEC, "command": "/none"}}),
    "a program that is not there": lambda d, s: by_exec(d, command="./none"),
    "the auth-provider of Azure": lambda d, s: presented(d, **{"auth-provider": {"name": "azure", "config": None}}),  # type: ignore[arg-type]
    "an entry twice": lambda d, s: d["users"].append(d["users"][0]),
    "an entry without a name": lambda d, s: d["users"].append({"user": {}}),
    "an entry without its member": lambda d, s: d["users"].append({"name": "other"}),
    "a section that is null": lambda d, s: d.update(extensions=None),
    "another kind": lambda d, s: d.update(kind="Other"),
    "no kind": lambda d, s: d.pop("kind"),
    "another version": lambda d, s: d.update(apiVersion="v2"),
    "a token that is a number": lambda d, s: user(d).update(token=12),
    "args with a number": lambda d, s: by_exec(d, args=["a", 5]),
    "args that are a text": lambda d, s: by_exec(d, args="a b"),
    "a boolean in quotes": lambda d, s: at(d).update({"insecure-skip-tls-verify": "true"}),
    "data that is no base64": lambda d, s: user(d).update({"client-certificate-data": "@"}),
    "base64 on two lines": lambda d, s: at(d).update(
        {"certificate-authority-data": s.authority[:64] + "\n" + s.authority[64:]}
    ),
    "a member of another type that nobody knows": lambda d, s: user(d).update(own=5),
    "a context that is not there": lambda d, s: d.update({"current-context": "none"}),
    "a user that is not there": lambda d, s: d["contexts"][0]["context"].update(user="none"),
}
TEXTS: dict[str, Callable[[str], bytes]] = {
    "a byte-order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "two documents": lambda text: f"{text}---\nkind: Other\n".encode(),
    "a key twice": lambda text: f"{text}current-context: c\n".encode(),
    "JSON": lambda text: json.dumps(yaml.safe_load(text)).encode(),
    "Latin-1": lambda text: text.replace("a-token", "é").encode("latin-1"),
    "a tab": lambda text: text.replace("  ", "\t").encode(),
    "a name that is a number to Go": lambda text: text.replace("cluster: c", "cluster: 1e3").encode(),
    "a token of zero and eight": lambda text: text.replace("a-token", "08").encode(),
    "a token that is a boolean to Go": lambda text: text.replace("a-token", "y").encode(),
    "a token that is a date": lambda text: text.replace("a-token", "2001-01-01").encode(),
    "a token that no longer is a number": lambda text: text.replace("a-token", "0b2").encode(),
    "a list": lambda text: b"- a\n",
    "nothing": lambda text: b"",
}


def document(server: Server) -> dict[str, Any]:
    where = {"server": f"https://localhost:{server.port}", "certificate-authority-data": server.authority}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": where}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "a-token"}}],
        "current-context": "c",
    }


def by_kubectl(kubectl: str, file: Path, server: Server) -> dict[str, Any] | None:
    """What reached the server; None if nothing did."""
    server.seen.clear()
    command = [kubectl, "--kubeconfig", str(file), "get", "--raw", "/api"]
    subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL, cwd="/", timeout=60)
    return server.seen[-1] if server.seen else None


def by_api_server(file: Path, server: Server) -> tuple[dict[str, Any] | None, str]:
    """What reached the server, None if nothing did, and the message."""
    server.seen.clear()
    try:
        with ApiServer(Kubeconfig.read(file), AksCluster("x"), os.environ) as api:
            api.check_sign_in()
    except AccessError as error:
        return (server.seen[-1] if server.seen else None), str(error)
    return (server.seen[-1] if server.seen else None), ""


@pytest.mark.parametrize("name", KUBECONFIGS)
def test_the_server_sees_the_same_of_both(name: str, server: Server, kubectl: str) -> None:
    changed = copy.deepcopy(document(server))
    KUBECONFIGS[name](changed, server)
    file = server.folder / "config"
    file.write_text(yaml.safe_dump(changed))

    ours, message = by_api_server(file, server)

    assert ours == by_kubectl(kubectl, file, server), message
    assert bool(message) == (ours is None)


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_is_read_as_kubectl_does(name: str, server: Server, kubectl: str) -> None:
    file = server.folder / "config"
    file.write_bytes(TEXTS[name](yaml.safe_dump(document(server))))

    ours, message = by_api_server(file, server)

    assert ours == by_kubectl(kubectl, file, server), message


def test_a_program_learns_the_same_of_the_cluster(server: Server, kubectl: str) -> None:
    changed = document(server)
    by_exec(changed, provideClusterInfo=True)
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    at(changed).update({"tls-server-name": "kubernetes.internal", "extensions": [extension]})
    server.plugin(token="t")
    file = server.folder / "config"
    file.write_text(yaml.safe_dump(changed))

    by_kubectl(kubectl, file, server)
    theirs = json.loads(server.text("info.json"))
    by_api_server(file, server)

    assert json.loads(server.text("info.json"))["spec"] == theirs["spec"]


def viewed(kubectl: str, file: Path) -> dict[str, Any]:
    """What kubectl reads; nothing for a file that is not there."""
    command = [kubectl, "--kubeconfig", str(file), "config", "view", "--raw", "-o", "json"]
    done = subprocess.run(command, capture_output=True, check=file.exists(), text=True)
    return dict(json.loads(done.stdout or "{}"))


def test_entries_go_into_the_files_that_kubectl_changes(tmp_path: Path, server: Server, kubectl: str) -> None:
    """An entry of a name that the second file has goes there, the rest into the first one that exists."""

    def files(folder: Path) -> tuple[Path, ...]:
        folder.mkdir()
        first, second = document(server), document(server)
        for section in ("clusters", "contexts", "users"):
            first[section][0]["name"] = "other"
        first["contexts"][0]["context"] = {"cluster": "other", "user": "other"}
        first["current-context"] = "other"
        (folder / "second").write_text(yaml.safe_dump(first))
        (folder / "third").write_text(yaml.safe_dump(second))
        return folder / "first", folder / "second", folder / "third"

    theirs, ours = files(tmp_path / "kubectl"), files(tmp_path / "ours")
    environ = {**os.environ, "KUBECONFIG": os.pathsep.join(map(str, theirs))}
    for arguments in (
        ("set-cluster", "c", "--server=https://b.example"),
        ("set-credentials", "new", "--token=t"),
        ("set-context", "c", "--cluster=c", "--user=new"),
        ("use-context", "c"),
    ):
        subprocess.run([kubectl, "config", *arguments], env=environ, check=True, capture_output=True)
    context = {"cluster": "c", "user": "new"}
    where = {**at(document(server)), "server": "https://b.example"}
    added = {
        "clusters": [{"name": "c", "cluster": where}],
        "contexts": [{"name": "c", "context": context}],
        "users": [{"name": "new", "user": {"token": "t"}}],
        "current-context": "c",
    }

    add_context(ours, Kubeconfig(added, "added"))

    for one, other in zip(theirs, ours, strict=True):
        assert one.exists() == other.exists()
        read = [
            subprocess.run(
                [kubectl, "--kubeconfig", str(file), "config", "view", "--raw"], capture_output=True, check=True
            )
            for file in (one, other)
            if file.exists()
        ]
        assert len({process.stdout for process in read}) <= 1


TRICKY = (
    *("716064e0", "25921e05", "08", "0o17", "1_0e3", "1e_3", "12e-1", "0x1F", ".5"),
    *("y", "N", "on", "null", "~", "2001-01-01", "é", "a: b", " #"),
)


def test_kubectl_reads_the_names_that_were_written(tmp_path: Path, server: Server, kubectl: str) -> None:
    file = tmp_path / "config"
    for text in TRICKY:
        add_context((file,), Kubeconfig({"users": [{"name": text, "user": {"token": text}}]}, text))

    read = viewed(kubectl, file)

    assert {entry["name"]: entry["user"]["token"] for entry in read["users"]} == {text: text for text in TRICKY}
