"""The lines of `az` that `idstack bootstrap` and `idstack rbac` print, before the real Azure CLI's own parser."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from identity.settings import load_settings
from ops.pipelines import azure_devops, github
from ops.pipelines.stack import PipelineStack
from tests.unit.components.world import configuration
from tools import clients

pytestmark = pytest.mark.clients

# Records the arguments of `az`, and answers as an `az` that found something.
_RECORDER = """\
#!/bin/sh
case "$*" in
    "devops "* | *"?appRoleId"* | *"definition list"*) ;;
    *) printf '%s\\036' "$(printf '%s\\037' "$@")" >> "{record}"; echo an-id ;;
esac
"""


def _printed(folder: Path) -> list[list[str]]:
    """The arguments of each `az` of both scripts but of its extension, one call of each kind."""
    settings = load_settings(configuration(), secret_keys=(), local=None)
    stack = PipelineStack("dev", settings, "azblob://states?storage_account=st", "states", "st", "kv", "key")
    record = folder / "record"
    for name, text in (("az", _RECORDER.format(record=record)), ("gh", "#!/bin/sh\ncat >/dev/null\necho an-id\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    for write, where in ((github.script, "acme/identities"), (azure_devops.script, "acme/identities")):
        script = write(where, [stack], "pipelines", ["jo"])
        subprocess.run(["sh", "-c", script], env=environment, check=True, stdin=subprocess.DEVNULL)
    calls = [call.split("\037")[:-1] for call in record.read_text().split("\036")[:-1]]
    options = {tuple(word for word in call if word.startswith("--")): call for call in calls}
    return list(options.values())


def test_azures_cli_takes_every_line_and_asks_for_a_login_first(tmp_path: Path) -> None:
    calls = _printed(tmp_path)
    kinds = {" ".join(call[:3]).partition(" --")[0] for call in calls}

    assert {"role assignment create", "role definition create", "group create", "identity create"} <= kinds
    for call in calls:
        environment = {**os.environ, "AZURE_CONFIG_DIR": str(tmp_path / "azure"), "AZURE_CORE_COLLECT_TELEMETRY": "no"}
        az = clients.azure_cli() / "az"
        done = subprocess.run([az, *call], env=environment, capture_output=True, text=True, check=False)
        # 2 is the parser's refusal.
        assert done.returncode == 1, f"az {shlex.join(call)}: {done.stderr}"
        assert "az login" in done.stderr, f"az {shlex.join(call)}: {done.stderr}"
