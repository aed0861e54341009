"""etcd: encrypted by the KMS plugin, whose key another one replaces meanwhile, and uploaded as a backup."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.consumers.consumer import Consumer, needs
from tests.consumers.guest import encryption, guest, in_etcd
from tests.consumers.programs import BackupKms, EtcdUpload, Kms
from tests.engine.small_stack import few_resources
from tests.harness import LocalStack, running_stack

_SECRETS: Final = "/api/v1/namespaces/default/secrets"
_NEXT: Final = "kv-etcd-next"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    with running_stack(tmp_path_factory.mktemp("etcd")) as stack:
        [cluster] = few_resources(stack)["hostedClusters"]
        identities = {name: one for name, one in cluster["identities"].items() if name != "kms"}
        group = f"/subscriptions/{stack.environment.subscription_id}/resourceGroups/identity-local"
        account = f"{group}/providers/Microsoft.Storage/storageAccounts/backuplocal"
        backup = {"identities": {**identities, "etcdBackup": {"enabled": True}}, "backupStorageAccountID": account}
        stack.configure(hostedClusters=[cluster | backup])
        stack.up()
        yield stack


@needs(Kms.program)
def test_a_secret_is_encrypted_and_what_is_encrypted_anew_needs_the_old_key_no_longer(
    stack: LocalStack, tmp_path: Path
) -> None:
    [cluster] = stack.configuration("hostedClusters")
    old = cluster["kms"]["activeKey"]
    new = re.sub("//[^.]+", f"//{_NEXT}", old)
    with _guest(stack, tmp_path / "before", old=Kms) as http:
        _write(http, "first")
        assert _seen(stack, http, "first") == {"first": ("first", "old")}
    *_, key, version = old.split("/")
    keys = [{"name": key, "version": version}]
    stack.seed(vaults=[{"name": _NEXT, "resourceGroup": "identity-local", "keys": keys}])
    stack.configure(hostedClusters=[{**cluster, "kms": {"activeKey": new, "backupKey": old}}])
    stack.up()
    with _guest(stack, tmp_path / "both", new=Kms, old=BackupKms) as http:
        _write(http, "second")
        both = _seen(stack, http, "first", "second")
        assert both == {"first": ("first", "old"), "second": ("second", "new")}
        _encrypt_anew(http, "first")
    stack.configure(hostedClusters=[{**cluster, "kms": {"activeKey": new}}])
    stack.up()
    with _guest(stack, tmp_path / "after", new=Kms) as http:
        after = _seen(stack, http, "first", "second")
        assert after == {"first": ("first", "new"), "second": ("second", "new")}


@needs(EtcdUpload.program)
def test_a_backup_is_uploaded(stack: LocalStack, tmp_path: Path) -> None:
    with EtcdUpload(stack, tmp_path / "upload") as upload:
        refused = upload.work()

    assert refused == ""
    [uploaded] = [key for kind, key in stack.contents() if kind == "blob" and key.startswith("backuplocal/etcd/hc1/")]
    assert uploaded.endswith(".db")


@contextmanager
def _guest(stack: LocalStack, folder: Path, **plugins: type[Consumer]) -> Iterator[httpx.Client]:
    """A guest cluster whose kube-apiserver calls these plugins, the first one to encrypt."""
    folder.mkdir()
    with ExitStack() as running:
        for name, plugin in plugins.items():
            made = running.enter_context(plugin(stack, folder / name))
            assert made.work() == ""
        sockets = {name: str(folder / name / "kms.sock") for name in plugins}
        options = {"encryption_provider_config": encryption(folder, **sockets)}
        yield running.enter_context(guest(stack, folder, **options))


def _write(http: httpx.Client, name: str) -> None:
    body = {"metadata": {"name": name}, "stringData": {"name": name}}
    http.post(_SECRETS, json=body).raise_for_status()


def _encrypt_anew(http: httpx.Client, name: str) -> None:
    """Write what is there, as HyperShift's migration does of everything."""
    path = f"{_SECRETS}/{name}"
    http.put(path, json=http.get(path).raise_for_status().json()).raise_for_status()


def _seen(stack: LocalStack, http: httpx.Client, *names: str) -> dict[str, tuple[str, str]]:
    """Of each Secret, what is read, and the name of the key in etcd."""
    found = {}
    for name in names:
        read = http.get(f"{_SECRETS}/{name}").raise_for_status().json()["data"]["name"]
        key = re.match(rb"k8s:enc:kms:v2:(\w+):", stored := in_etcd(stack, name))
        assert key, stored
        found[name] = (base64.b64decode(read).decode(), key[1].decode())
    return found
