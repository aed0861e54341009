"""The kubelet's copies of collections: what they hold, and what they do when a watch fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, cast

import httpx
import pytest

from localcloud.core.clouds import LocalEnvironment
from localcloud.kubelet.client import CONFIG_MAPS, PODS, SECRETS, ApiClient
from localcloud.kubelet.cluster import ClusterCache, Key, Reflector
from localcloud.kubernetes.calls import ApiError
from localcloud.kubernetes.kubeconfig import connection
from localcloud.testing.kubernetes import secret
from tests.kubelet_world import NAMESPACE, ClusterApi

Object = dict[str, Any]


def pod(name: str, version: int, **fields: Any) -> Object:
    return {"metadata": {"namespace": "n", "name": name, "resourceVersion": str(version)}, **fields}


class ScriptedServer:
    """Lists and watches as the test has written them down; after the last one nothing happens any more."""

    def __init__(self, *script: Sequence[Any] | Exception) -> None:
        self._script = [*script]
        self.over = asyncio.Event()

    async def list(self, _: object) -> tuple[Sequence[Object], str]:
        return await self._next(), "1"

    async def watch(self, _: object, version: str) -> AsyncIterator[tuple[str, Object]]:
        for event in await self._next():
            yield event

    async def _next(self) -> Sequence[Any]:
        if not self._script:
            self.over.set()
            await asyncio.Event().wait()
        step = self._script.pop(0)
        if isinstance(step, Exception):
            raise step
        return step


def followed(*script: Any) -> tuple[dict[Key, Object], list[str]]:
    """The copy at the end of a server's script, and the names of the objects that were reported as changed."""
    changed: list[str] = []

    async def run() -> dict[Key, Object]:
        server = ScriptedServer(*script)
        copy = Reflector(cast(ApiClient, server), PODS, lambda key: changed.append(key[1]))
        following = asyncio.create_task(copy.run())
        await server.over.wait()
        following.cancel()
        return dict(copy.objects)

    return asyncio.run(run()), changed


def test_a_copy_is_the_list_and_every_change_since() -> None:
    newer = pod("a", 3, changed=True)

    objects, changed = followed(
        [pod("a", 1), pod("b", 1)], [("MODIFIED", newer), ("DELETED", pod("b", 4)), ("ADDED", pod("c", 5))]
    )

    assert objects == {("n", "a"): newer, ("n", "c"): pod("c", 5)}
    assert sorted(changed[:2]) == ["a", "b"]
    assert changed[2:] == ["a", "b", "c"]


@pytest.fixture
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localcloud.kubelet.cluster._RETRY", 0)


@pytest.mark.usefixtures("_no_pause")
@pytest.mark.parametrize(
    "failure", [ApiError(410, "Expired", "too old"), ApiError(404, "NotFound", "no such kind"), httpx.ReadError("gone")]
)
def test_a_broken_watch_is_followed_by_a_list_of_what_was_missed(failure: Exception) -> None:
    objects, changed = followed([pod("a", 1), pod("b", 1)], failure, [pod("b", 1), pod("c", 7)])

    assert set(objects) == {("n", "b"), ("n", "c")}
    assert sorted(changed[2:]) == ["a", "c"], "b is as it was"


@pytest.mark.parametrize(
    ("event", "left"),
    [
        (("MODIFIED", pod("a", 5)), {("n", "a"): pod("a", 5)}),
        (("DELETED", pod("a", 5)), {}),
        (("MODIFIED", pod("b", 5)), {("n", "a"): pod("a", 1), ("n", "b"): pod("b", 5)}),
    ],
)
def test_a_write_that_is_heard_of_late_does_not_bring_the_past_back(
    event: tuple[str, Object], left: dict[Key, Object]
) -> None:
    async def run() -> dict[Key, Object]:
        server = ScriptedServer([pod("a", 1)], [event])
        copy = Reflector(cast(ApiClient, server), PODS, lambda _: None)
        following = asyncio.create_task(copy.run())
        await server.over.wait()
        copy.remember(pod("a", 4))
        following.cancel()
        return dict(copy.objects)

    assert asyncio.run(run()) == left


@pytest.mark.parametrize("type_", ["MODIFIED", "DELETED"])
def test_an_event_from_before_a_write_does_not_undo_it(type_: str) -> None:
    async def run() -> Object | None:
        server = ScriptedServer([pod("a", 1)], [(type_, pod("a", 4))])
        copy = Reflector(cast(ApiClient, server), PODS, lambda _: None)
        following = asyncio.create_task(copy.run())
        await copy.synced.wait()
        copy.remember(pod("a", 5))
        await server.over.wait()
        following.cancel()
        return copy.objects.get(("n", "a"))

    assert asyncio.run(run()) == pod("a", 5)


def asked(environment: LocalEnvironment, what: Callable[[ApiClient], Awaitable[Any]]) -> Any:
    """The answer of a client of the running API."""

    async def run() -> Any:
        client = ApiClient(connection(environment.kubeconfig))
        try:
            return await what(client)
        finally:
            await client.close()

    return asyncio.run(run())


def test_an_object_that_no_watch_has_brought_yet_is_asked_for(
    cluster: ClusterApi, environment: LocalEnvironment
) -> None:
    made = cluster.create(SECRETS, secret("pull", key="v"))

    def copies(client: ApiClient) -> ClusterCache:
        return ClusterCache(client, lambda *_: None)

    assert asked(environment, lambda client: copies(client).find(SECRETS, NAMESPACE, "pull")) == made
    assert asked(environment, lambda client: copies(client).find(SECRETS, NAMESPACE, "none")) is None
    assert asked(environment, lambda client: copies(client).find(CONFIG_MAPS, NAMESPACE, "")) is None
