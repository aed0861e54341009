"""A state in a storage account: what a refusal or a crash of the engine over a failed write means, for a person."""

from __future__ import annotations

from typing import Final

import pytest

from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.state_container import failure
from tests.unit.ops.conftest import FakeEngine

REFUSED: Final = """\
error: read ".pulumi/meta.yaml": blob (key ".pulumi/meta.yaml") (code=Unknown): GET https://stx.blob.core.windows.net/state/.pulumi%2Fmeta.yaml
--------------------------------------------------------------------------------
RESPONSE 403: 403 Forbidden
ERROR CODE: AuthorizationPermissionMismatch
"""
CRASHED: Final = """\
The Pulumi CLI encountered a fatal error. This is a bug!
io.(*PipeReader).CloseWithError(...)
gocloud.dev/blob/azureblob.(*writer).Close(0x89076da3db0)
github.com/pulumi/pulumi/pkg/v3/backend/diy.(*diyBackend).{caller}(0x89077373830, {{0x4728ed0, 0x89077425800}})
"""


def test_a_refusal_names_the_container_and_the_roles() -> None:
    assert str(failure(REFUSED, "dev")) == (
        "the signed-in identity may not use the container of the state, stx.blob.core.windows.net/state. To read a "
        "stack requires the role Storage Blob Data Reader on the container, to change one Storage Blob Data "
        "Contributor (docs/guides/pull-requests.md); a new assignment takes effect within ten minutes"
    )


@pytest.mark.parametrize(
    ("caller", "then"),
    [
        ("Lock", "Nothing was started: correct that and run the command again"),
        (
            "saveCheckpoint",
            "The state may lack the last changes: after the correction `make recover STACK=dev` finds them, and brings "
            "the stack up",
        ),
    ],
)
def test_a_crash_over_a_write_says_how_to_go_on(caller: str, then: str) -> None:
    told = str(failure(CRASHED.format(caller=caller), "dev"))
    assert told.startswith("the state could not be written to its container, and the engine crashed without a reason. ")
    assert told.endswith(then)


@pytest.mark.parametrize(
    "errors", ["error: update failed", "PUT https://management.azure.com/x\n---\nRESPONSE 403: 403 Forbidden"]
)
def test_another_failure_is_no_matter_of_the_container(errors: str) -> None:
    assert failure(errors, "dev") is None


def test_a_command_says_it_in_place_of_a_trace(engine: FakeEngine) -> None:
    engine.fails(CRASHED.format(caller="Lock"))

    with pytest.raises(CommandError, match="could not be written to its container"):
        Engine("dev").preview()
