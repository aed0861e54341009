"""Whose definitions the local cloud applies: those that nobody else manages."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from localcloud.apiserver.apply import ApiServer, NotAppliedError
from localcloud.apiserver.commands import service_addresses
from localcloud.testing.hosts import Serve

# Where the local kube-apiserver's Services are.

PORTS = st.integers(20000, 31999)


@given(PORTS, PORTS)
def test_local_clouds_with_ports_of_different_blocks_share_no_address(one: int, other: int) -> None:
    networks = IPv4Network(service_addresses(one)), IPv4Network(service_addresses(other))

    assert networks[0].overlaps(networks[1]) == (one // 16 == other // 16)
    assert all(network.subnet_of(IPv4Network("127.32.0.0/11")) for network in networks)


_PATH: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"


def definition(name: str) -> dict[str, Any]:
    return {"kind": "CustomResourceDefinition", "metadata": {"name": name}}


def managed(*managers: tuple[str, str]) -> list[dict[str, Any]]:
    """Managed fields by manager and subresource."""
    return [{"manager": manager, "subresource": part} if part else {"manager": manager} for manager, part in managers]


@pytest.fixture
def administrator(serve_plain: Serve, tmp_path: Path) -> ApiServer:
    """Asks a server that has definitions in every state."""
    there = {
        "new-release": managed(("localcloud", ""), ("kube-apiserver", "status")),
        "installed": managed(("hypershift", ""), ("kube-apiserver", "status")),
        "both": managed(("localcloud", ""), ("hypershift", "")),
        "reset": [],
    }

    async def read(request: Request) -> JSONResponse:
        name = request.path_params["name"]
        if name == "failing":
            return JSONResponse({"message": "etcd is gone"}, 500)
        if name not in there:
            return JSONResponse({}, 404)
        return JSONResponse({"metadata": {"name": name, "managedFields": there[name]}})

    kubeconfig = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": serve_plain(Starlette(routes=[Route(_PATH, read)]))}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig), encoding="utf-8")
    return ApiServer(file)


def test_a_definition_that_another_manager_has_applied_is_left_alone(administrator: ApiServer) -> None:
    names = ["missing", "new-release", "installed", "both", "reset"]

    with administrator:
        left = administrator.without_other_managers(map(definition, names))

    assert [crd["metadata"]["name"] for crd in left] == ["missing", "new-release", "reset"]


def test_a_definition_that_cannot_be_read_is_named(administrator: ApiServer) -> None:
    with administrator, pytest.raises(NotAppliedError, match=r"/failing at http.* 500 .*etcd is gone"):
        administrator.without_other_managers([definition("failing")])
