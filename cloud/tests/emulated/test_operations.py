"""How many requests a resource's creation takes, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from emulated.azure_native.provider import AzureNative
from emulated.azuread.provider import AzureAd
from localcloud.testing.certificates import issue
from localcloud.testing.plugins import create
from plugin import Secret
from tests.emulated.test_azure_native import IDENTITY, identity_inputs
from tests.emulated.test_azuread import APPLICATION, CERTIFICATE, PRINCIPAL

Unique = Callable[[str], str]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The requests of the plugins while this is open; a refusal, after which they try again, is none."""
    sent: list[str] = []
    send = httpx.Client.request

    def counting(self: httpx.Client, method: str, url: str, **options: Any) -> httpx.Response:
        answer = send(self, method, url, **options)
        # To look for what is not there yet is a part of azure-native's create.
        if answer.is_success or method == "GET":
            sent.append(f"{method} {url}")
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(httpx.Client, "request", counting)
        yield sent


def test_graph_resources_take_so_many_requests(
    azuread: AzureAd, unique: Unique, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = azuread.invoke("azuread:index/getClientConfig:getClientConfig", {})["objectId"]
    with counted(monkeypatch) as sent:
        _, application = create(azuread, APPLICATION, {"displayName": unique("app"), "owners": [me]})
    assert len(sent) == 5, sent
    with counted(monkeypatch) as sent:
        create(azuread, PRINCIPAL, {"clientId": application.state["clientId"], "owners": [me]})
    assert len(sent) == 5, sent
    registration = {"applicationId": application.id, "type": "AsymmetricX509Cert"}
    with counted(monkeypatch) as sent:
        create(azuread, CERTIFICATE, {**registration, "value": Secret(issue().certificate_pem)})
    assert len(sent) == 8, sent


def test_arm_resources_take_so_many_requests(
    azure_native: AzureNative, unique: Unique, monkeypatch: pytest.MonkeyPatch
) -> None:
    with counted(monkeypatch) as sent:
        create(azure_native, IDENTITY, identity_inputs(unique("identity")))
    assert len(sent) == 3, sent
