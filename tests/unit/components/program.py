"""`__main__.py` as the language host runs it."""

from __future__ import annotations

import gc
import json
import runpy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest.mock import AsyncMock

import pytest

from tests.unit.components import world
from tests.unit.components.recorder import RecordingMonitor, run

# Runs the program; the fixture `program` describes the arguments.
Program = Callable[..., RecordingMonitor]

PROJECT = Path(__file__).resolve().parents[3]


class _EmptyStack:
    """Takes the place of `IdentityStack`: a program with it ends after the look-ups and the providers."""

    def __init__(self, *parts: Any) -> None:
        pass

    def outputs(self) -> dict[str, Any]:
        """No outputs."""
        return {}


def run_program(
    folder: Path,
    *,
    file: Path = PROJECT / "__main__.py",
    invokes: Any = None,
    options: Any = None,
    secret_keys: tuple[str, ...] = (),
    lookups_only: bool = False,
    disabled: Sequence[str] = (),
    control_planes: Mapping[str, str] | Callable[..., Mapping[str, str]] = MappingProxyType({}),
    **changes: Any,
) -> RecordingMonitor:
    """Run the program in `folder`; see the fixture `program`."""
    config = {f"idstack:{key}": value for key, value in world.configuration(**changes).items()}
    config["pulumi:disable-default-providers"] = json.dumps(disabled)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("IDSTACK_LOCAL_ENVIRONMENT", raising=False)
        patch.setenv("PULUMI_CONFIG", json.dumps(config))
        patch.setenv("PULUMI_CONFIG_SECRET_KEYS", json.dumps([f"idstack:{key}" for key in secret_keys]))
        patch.setattr(
            "components.preflight.cluster_checks._fetch_control_planes",
            AsyncMock(**{"side_effect" if callable(control_planes) else "return_value": control_planes}),
        )
        if lookups_only:
            patch.setattr("components.program.IdentityStack", _EmptyStack)
        try:
            return run(
                lambda: runpy.run_path(str(file), run_name="__main__") and None,
                invokes=world.lookups() if invokes is None else invokes,
                **(options or {}),
            )
        finally:
            gc.enable()  # the program disables it for its process
