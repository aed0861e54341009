"""Pins the provider plugins for this machine, which are downloaded only with pinned checksums."""

from __future__ import annotations

from collections.abc import Mapping

from ops.stack import pinned_plugins
from ops.stack.errors import CommandError
from tools import pin


def unpinned(environment: Mapping[str, str]) -> list[str]:
    """Name and version of each plugin of the SDKs that is neither in the engine's cache nor has a checksum."""
    return [
        f"{name} {version}"
        for name, version in pinned_plugins.current()
        if not pinned_plugins.cached(name, version, environment).exists()
        and pinned_plugins.checksum(name, version) is None
    ]


def pin_them(stack: str) -> None:
    """`make pin`; raises CommandError if a download fails, or if two sources of a checksum differ."""
    if pin.main() != 0:
        raise CommandError(
            f"the plugins are not pinned for the reason above; Pulumi.{stack}.yaml and the stack exist. "
            f"`idstack init {stack} --pin` tries again"
        )
