"""Which provider answers which engine, when one server has several of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from plugin.log import EngineLog
from plugin.provider import Provider, Resource

# So many attachments are kept after their engine's Cancel: an interrupted engine may still send the rest of a step.
_KEPT_AFTER_CANCEL: Final = 32


@dataclass(frozen=True)
class Attachment:
    """A provider, configured by one provider resource of one engine, and that engine's log."""

    provider: Provider
    log: EngineLog

    def resource(self, urn: str) -> Resource:
        """The resource type of a URN; raises `PluginError` for a type this plugin does not have."""
        # urn:pulumi:<stack>::<project>::<parent type>$<type>::<name>
        qualified_type = urn.split("::")[2]
        return self.provider.resource(qualified_type.rsplit("$", 1)[-1])


class Attachments:
    """A provider for the engine that started this process, and one for each connection that was attached.

    The protocol's calls do not name the provider resource that they are for. But the engine opens a connection for each
    one (pkg/resource/plugin/provider_plugin.go, NewProvider) and attaches it before it configures it, so the address at
    the connection's other end distinguishes them. Threads may share it.
    """

    def __init__(self, make: Callable[[], Provider], engine_address: str | None) -> None:
        self._make = make
        self._started = Attachment(make(), EngineLog(engine_address))
        self._attached: dict[str, Attachment] = {}
        self._cancelled: list[str] = []
        self._lock = threading.Lock()

    def attach(self, peer: str, engine_address: str) -> None:
        """Give the connection from `peer` a provider of its own."""
        attachment = Attachment(self._make(), EngineLog(engine_address))
        with self._lock:
            self._forget(peer)
            self._attached[peer] = attachment

    def of(self, peer: str) -> Attachment:
        """The provider and the log of the connection from `peer`."""
        with self._lock:
            return self._attached.get(peer, self._started)

    def cancel(self, peer: str) -> None:
        """Note that the engine at `peer` ends; the attachment that ended longest ago is dropped."""
        with self._lock:
            if peer in self._attached and peer not in self._cancelled:
                self._cancelled.append(peer)
            if len(self._cancelled) > _KEPT_AFTER_CANCEL:
                self._forget(self._cancelled[0])

    def close(self) -> None:
        """Close the connections to every engine."""
        with self._lock:
            for peer in list(self._attached):
                self._forget(peer)
            self._started.log.close()

    def _forget(self, peer: str) -> None:
        """Drop the attachment of `peer`, if there is one."""
        if peer in self._cancelled:
            self._cancelled.remove(peer)
        if attachment := self._attached.pop(peer, None):
            attachment.log.close()
