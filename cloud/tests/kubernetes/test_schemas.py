"""The schemas in the repository are those of the installed client."""

from __future__ import annotations

import json

from localcloud.kubernetes import write_schemas
from localcloud.kubernetes.kinds import KINDS
from localcloud.kubernetes.schemas import components


def test_the_written_schemas_are_the_installed_clients() -> None:
    written = json.loads(write_schemas.FILE.read_text(encoding="utf-8"))

    assert written == write_schemas.schemas(), "run: python -m localcloud.kubernetes.write_schemas"


def test_every_kind_has_a_schema() -> None:
    assert {kind.kind for kind in KINDS} <= set(components())
