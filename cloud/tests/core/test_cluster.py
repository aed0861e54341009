"""Which Kubernetes API a local cloud has is chosen once, and everybody signs in to it as somebody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.apiserver.commands import Binaries, NotBuiltError
from localcloud.core.cluster import (
    ADMINISTRATOR,
    DEPLOYER,
    KUBELET,
    USERS,
    ClusterKind,
    ClusterKindConflictError,
    choose,
    token,
)
from localcloud.core.state_directory import StateDirectory
from localcloud.core.store import Store
from localcloud.runtime.environment import SERVICES, prepare
from localcloud.testing.azure import open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = open_store(tmp_path / "state.sqlite")
    yield made
    made.close()


def test_the_built_in_api_is_the_default(store: Store) -> None:
    assert choose(store) is ClusterKind.BUILT_IN
    assert choose(store, ClusterKind.BUILT_IN) is ClusterKind.BUILT_IN


def test_without_a_wish_the_first_choice_is_kept(store: Store) -> None:
    choose(store, ClusterKind.API_SERVER)

    assert choose(store) is ClusterKind.API_SERVER


def test_another_choice_later_is_refused_with_its_fix(store: Store) -> None:
    choose(store, ClusterKind.BUILT_IN)

    with pytest.raises(ClusterKindConflictError) as refused:
        choose(store, ClusterKind.API_SERVER)

    assert str(refused.value) == (
        "this local cloud has its Kubernetes API from the built-in server, which is fixed: end it, and all "
        "that is in it, with `localcloud stop --remove`, then `localcloud start --cluster apiserver` starts one with "
        "kube-apiserver"
    )


def test_on_kube_apiserver_each_user_keeps_a_token_of_its_own(store: Store) -> None:
    tokens = [token(store, ClusterKind.API_SERVER, user) for user in USERS]

    assert len(set(tokens)) == len(USERS)
    assert [token(store, ClusterKind.API_SERVER, user) for user in USERS] == tokens


def test_the_built_in_api_knows_the_deployers_token_only(store: Store) -> None:
    deployer = token(store, ClusterKind.BUILT_IN, DEPLOYER)

    assert {token(store, ClusterKind.BUILT_IN, user) for user in (KUBELET, ADMINISTRATOR)} == {deployer}


def test_on_kube_apiserver_the_daemon_does_not_serve_kubernetes(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "state")
    state.create()
    store = state.open_store()
    choose(store, ClusterKind.API_SERVER)
    store.close()

    prepared = prepare(state)
    try:
        assert prepared.services == SERVICES[:-1]
        assert prepared.environment.cluster == "apiserver"
        assert prepared.environment.kubernetes_endpoint == f"https://127.0.0.1:{prepared.ports['kubernetes']}"
        secret = [file for file in state.control_plane.iterdir() if file.stat().st_mode & 0o077]
        assert secret == []
    finally:
        prepared.close()
        state.remove()


def test_a_folder_that_the_environment_names_goes_first(tmp_path: Path) -> None:
    named = {"LOCALCLOUD_BINARIES": str(tmp_path)}
    with pytest.raises(NotBuiltError, match=f"^LOCALCLOUD_BINARIES={tmp_path}: no kube-apiserver is in there$"):
        Binaries.find(environ=named)

    (tmp_path / "kube-apiserver").touch()
    assert Binaries.find(environ=named).path("etcd") == str(tmp_path / "etcd")


def test_without_kube_apiserver_the_variable_that_names_it_is_told(tmp_path: Path) -> None:
    record = tmp_path / "cluster.json"
    with pytest.raises(NotBuiltError, match="is not on this machine: let LOCALCLOUD_BINARIES name a folder with etcd"):
        Binaries.find(record)

    record.write_text(json.dumps({"bin": str(tmp_path / "gone")}))
    with pytest.raises(
        NotBuiltError, match="gone, where kube-apiserver was, is gone: build it again, or let LOCALCLOUD_BINARIES"
    ):
        Binaries.find(record)
