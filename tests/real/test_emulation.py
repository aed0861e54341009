"""The emulated provider plugins do what the real ones do, from the first `up` to `down`."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from identity.credentials import rfc3339
from ops.stack import plugins
from tests.engine import broken
from tests.engine.out_of_band import OutOfBand
from tests.engine.rotations import LIFE, SETTLED
from tests.engine.small_stack import small_stack
from tests.harness import PROJECT, LocalStack

Told: TypeAlias = Mapping[str, Any]
"""What the engine was told, by stage, resource and operation."""

# What differs from one run to the next, and the word that stands for it.
_PASSING: Final = (
    (re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"), "<uuid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)"), "<time>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "<address>"),
    (re.compile(r"\b[0-9A-F]{40}\b"), "<thumbprint>"),
    (re.compile(r"-----BEGIN CERTIFICATE-----.*", re.DOTALL), "<certificate>"),
)


def travel(root: Path, providers: str) -> Told:
    """Bring a small stack up with these plugins, change, renew and repair it, and take it down again."""
    credentials = {**LIFE, "propagation": SETTLED}
    with small_stack(root, "stack", providers=providers) as stack, stack.configured(credentials=credentials):
        journey = _Journey(stack)
        return {stage: go(journey) for stage, go in _STAGES.items()}


@dataclass
class _Journey:
    """The stack, and the clock of its schedules: no certificate may begin in the future."""

    stack: LocalStack
    clock: datetime = field(default_factory=lambda: datetime.now(UTC) - timedelta(days=3))

    def up(self) -> Told:
        return self._told("up", "--yes", "--skip-preview")

    def preview(self) -> Told:
        return self._told("preview")

    def preview_of_a_change(self) -> Told:
        image = {"image": "idstack/credential-probe:another"}
        self.stack.configure(tags={"environment": "another"}, probe=image)
        return self.preview()

    def renewal(self) -> Told:
        """A day later, when every certificate is due."""
        self.clock += timedelta(days=1)
        return self.up()

    def drift(self) -> Told:
        """What a preview finds of changes by hand."""
        out_of_band = OutOfBand(self.stack)
        application = self.stack.resource("hc1-node-pool-management-entra-application")["id"]
        out_of_band.graph("PATCH", application, {"displayName": "by hand"})
        with self.stack.kubernetes() as http:
            broken.patch_class(http, "managed-azure-disk-csi", {"keyvaultName": "kv-elsewhere"})
            broken.stop(http, "probe-ingress")
        return self._told("preview", "--refresh")

    def repair(self) -> Told:
        return self._told("up", "--yes", "--skip-preview", "--refresh")

    def down(self) -> Told:
        return self._told("destroy", "--yes", "--skip-preview")

    def _told(self, *command: str) -> Told:
        found: dict[str, dict[str, Any]] = defaultdict(dict)
        for event in self.stack.logged(*command, IDSTACK_CLOCK=rfc3339.render(self.clock)):
            for kind in event.keys() & {"resourcePreEvent", "resOutputsEvent"}:
                step = event[kind]["metadata"]
                if step["op"] != "same":
                    name = f"{step['type']} {step['urn'].rpartition('::')[2]}"
                    found[name][f"{step['op']} {kind}"] = _what_matters(step)
        return found


_STAGES: Final[Mapping[str, Callable[[_Journey], Told]]] = {
    "up": _Journey.up,
    "preview": _Journey.preview,
    "preview of a change": _Journey.preview_of_a_change,
    "up of it": _Journey.up,
    "renewal": _Journey.renewal,
    "drift": _Journey.drift,
    "repair": _Journey.repair,
    "down": _Journey.down,
}


def _what_matters(step: Mapping[str, Any]) -> Any:
    new = step.get("new") or {}
    return _lasting({
        "inputs": new.get("inputs"),
        "keys": sorted(step.get("keys") or []),
        "differences": sorted(step.get("diffs") or []),
        "in detail": step.get("detailedDiff"),
    })  # fmt: skip


def _lasting(value: Any) -> Any:
    """The value with what differs from run to run replaced."""
    if isinstance(value, dict):
        return {key: _lasting(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_lasting(part) for part in value]
    if isinstance(value, str):
        for pattern, word in _PASSING:
            value = pattern.sub(word, value)
    return value


def differences(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """Each place in which the two differ, with what each has there."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from differences(one.get(key), other.get(key), f"{place}/{key}")
    elif one != other:
        yield f"{place}: {one!r} != {other!r}"


# Those that `make real` was asked for, all of them if it was not; one that is not available is a failure.
_REAL: Final = sorted(plugins.parse(os.environ.get(plugins.VARIABLE) or plugins.REAL))


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return travel(tmp_path_factory.mktemp("emulated"), plugins.EMULATED)


@pytest.mark.real
@pytest.mark.parametrize("name", _REAL)
def test_the_engine_is_told_the_same(name: str, emulated: Told, tmp_path: Path) -> None:
    real = travel(tmp_path, name)

    assert "\n".join(differences(emulated, real)) == ""


@pytest.mark.slow
def test_a_plugin_on_path_is_started_as_a_real_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the comparison needs but a real plugin, for which an emulated one stands."""
    plugin = PROJECT / "cloud/emulated/bin/pulumi-resource-azure-native"
    on_path, starts = tmp_path / plugin.name, tmp_path / "starts"
    on_path.write_text(f'#!/bin/sh\necho >> {starts}\nexec {plugin} "$@"\n', encoding="utf-8")
    on_path.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (root := tmp_path / "stack").mkdir()

    told = travel(root, "azure-native")

    # At least once for its version and once in each stage.
    assert len(starts.read_text(encoding="utf-8")) > len(told)
    assert [stage for stage, what in told.items() if not what] == ["preview"]
