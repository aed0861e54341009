"""Kubeconfigs as kubectl reads them: both are pointed at one server, and what reaches it is compared."""

from __future__ import annotations

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
from tests.unit import cases

__all__ = ["server"]

FILE = Path(__file__).parent / "kubeconfigs.yaml"


def changed(name: str, server: Server) -> dict[str, Any]:
    """The kubeconfig of that name in the file; a program that it has prints what stands there."""
    words = {
        "PORT": server.port,
        "PROXY": server.proxy_port,
        "CERTIFICATE": server.text("me.crt"),
        "KEY": server.text("me.key"),
        "AUTHORITY_HEAD": server.authority[:64],
        "AUTHORITY_TAIL": server.authority[64:],
    }
    change = cases.read(FILE, words)[name]
    whole = document(server)
    [user] = whole["users"]
    if "exec" in change:
        user["user"] = {"exec": {**EXEC, **change["exec"]}}
    user["user"] = change.get("alone", user["user"])
    whole["users"] += change.get("users", [])
    for holder, members in (
        (whole["clusters"][0]["cluster"], change.get("cluster", {})),
        (whole["contexts"][0]["context"], change.get("context", {})),
        (user["user"], change.get("user", {})),
        (whole, change.get("whole", {})),
    ):
        holder |= {member: value for member, value in members.items() if value is not cases.ABSENT}
        for member in [member for member, value in members.items() if value is cases.ABSENT]:
            del holder[member]
    if "prints" in change:
        server.plugin(**change["prints"])
    return whole


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


@pytest.mark.parametrize("name", yaml.safe_load(FILE.read_text(encoding="utf-8")))
def test_the_server_sees_the_same_of_both(name: str, server: Server, kubectl: str) -> None:
    file = server.folder / "config"
    file.write_text(yaml.safe_dump(changed(name, server)))

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
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    given = document(server)
    given["clusters"][0]["cluster"] |= {"tls-server-name": "kubernetes.internal", "extensions": [extension]}
    given["users"][0]["user"] = {"exec": {**EXEC, "provideClusterInfo": True}}
    server.plugin(token="t")
    file = server.folder / "config"
    file.write_text(yaml.safe_dump(given))

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
    where = {**document(server)["clusters"][0]["cluster"], "server": "https://b.example"}
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
