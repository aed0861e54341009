"""What keeps the engine from a state is told in words, with what to type; the errors are those of pulumi v3.259."""

from __future__ import annotations

import pytest

from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.failures import NoSuchStackError, backend_failure
from tests.unit.ops.conftest import FakeEngine

AZURE = "azblob://pulumi-state?storage_account=stdev"
TOKEN = """\
error: read ".pulumi/meta.yaml": blob (key ".pulumi/meta.yaml") (code=Unknown): DefaultAzureCredential: failed to acquire a token.
Attempted credentials:
	ManagedIdentityCredential authentication failed.
		GET http://169.254.169.254/metadata/identity/oauth2/token
		RESPONSE 403: 403 Forbidden
"""  # noqa: E501
NOT_SET = "passphrase must be set with PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE environment variables"
REFUSED = """\
error: read ".pulumi/meta.yaml": blob (key ".pulumi/meta.yaml") (code=Unknown): GET https://stx.blob.core.windows.net/state/.pulumi%2Fmeta.yaml
--------------------------------------------------------------------------------
RESPONSE 403: 403 Forbidden
ERROR CODE: AuthorizationPermissionMismatch
"""
CRASHED = """\
The Pulumi CLI encountered a fatal error. This is a bug!
io.(*PipeReader).CloseWithError(...)
gocloud.dev/blob/azureblob.(*writer).Close(0x89076da3db0)
github.com/pulumi/pulumi/pkg/v3/backend/diy.(*diyBackend).{caller}(0x89077373830, {{0x4728ed0, 0x89077425800}})
"""
SET = "set PULUMI_CONFIG_PASSPHRASE, or PULUMI_CONFIG_PASSPHRASE_FILE to a file that has it. Nothing was changed"


@pytest.mark.parametrize(
    ("errors", "backend", "message"),
    [
        (
            "error: PULUMI_ACCESS_TOKEN must be set for login during non-interactive CLI sessions",
            None,
            "the state of the stack dev cannot be located: Pulumi.dev.yaml records no `idstack:backend`, "
            "PULUMI_BACKEND_URL is not set, and there is no login. `idstack pulumi --stack dev -- config set backend "
            "'azblob://<container>?storage_account=<account>'` records it, or `idstack pulumi --stack dev -- login` "
            "uses Pulumi Cloud",
        ),
        (
            "error: no stack named 'dev' found",
            AZURE,
            f"the backend {AZURE} has no stack dev. If it is in another one, name that as `idstack:backend` in "
            "Pulumi.dev.yaml; `idstack init dev` creates a new one",
        ),
        (
            "error: no stack named 'organization/idstack/local' found",
            "file:///srv/states",
            "the backend file:///srv/states has no stack local: `make up STACK=local` creates it",
        ),
        (
            "error: getting stack configuration: get stack secrets manager: incorrect passphrase",
            AZURE,
            f"the passphrase is not the one that encrypts the secrets of the stack dev: {SET}",
        ),
        (
            f"error: getting stack configuration: get stack secrets manager: {NOT_SET}",
            AZURE,
            f"the passphrase is missing, the one that encrypts the secrets of the stack dev: {SET}",
        ),
        (
            TOKEN,
            AZURE,
            f"the backend {AZURE} cannot be read (failed to acquire a token). Sign in with `az login` (in CI: the "
            "variables AZURE_CLIENT_ID and AZURE_TENANT_ID) with an identity that has the role Storage Blob Data "
            "Reader on the container. If the address is wrong, correct `idstack:backend` in Pulumi.dev.yaml",
        ),
        (
            'error: unable to open state directory "file:///srv/my states": stat /srv/my states: no such file or '
            "directory",
            "file:///srv/my states",
            "the backend file:///srv/my states is a folder that does not exist. Mount it; if this is its first stack, "
            "create it: `mkdir -p '/srv/my states'`. If the address is wrong, correct `idstack:backend` in "
            "Pulumi.dev.yaml. Then run the command again",
        ),
        (
            REFUSED,
            AZURE,
            "the signed-in identity may not use the container of the state, stx.blob.core.windows.net/state. To read a "
            "stack requires the role Storage Blob Data Reader on the container, to change one Storage Blob Data "
            "Contributor (docs/guides/pull-requests.md); a new assignment takes effect within ten minutes",
        ),
    ],
    ids=[
        *("no login", "no stack", "no local stack", "wrong passphrase", "no passphrase", "no sign-in", "no folder"),
        "refused",
    ],
)
def test_a_failure_is_told_with_what_to_do(errors: str, backend: str | None, message: str) -> None:
    found = backend_failure(errors, "dev", backend)

    assert str(found) == message
    assert isinstance(found, NoSuchStackError) == ("no stack named" in errors)


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
    told = str(backend_failure(CRASHED.format(caller=caller), "dev", AZURE))
    assert told.startswith("the state could not be written to its container, and the engine crashed without a reason. ")
    assert told.endswith(then)


def test_a_command_says_it_in_place_of_a_trace(engine: FakeEngine) -> None:
    engine.fails(CRASHED.format(caller="Lock"))

    with pytest.raises(CommandError, match="could not be written to its container"):
        Engine("dev").preview()


@pytest.mark.parametrize(
    "errors",
    ["", "error: something else", TOKEN, "PUT https://management.azure.com/x\n---\nRESPONSE 403: 403 Forbidden"],
    ids=["nothing", "another", "of no backend", "of no container"],
)
def test_other_failures_stay_as_they_are(errors: str) -> None:
    assert backend_failure(errors, "dev", None) is None
