"""The scripts that prepare a stack's pipelines on the local cloud, with Azure's CLI and stand-ins for the forges."""

from __future__ import annotations

from pathlib import Path

import pytest

from localcloud.testing.running import LocalEnvironment, execute
from tests.harness import PROJECT
from tests.unit.workflows.test_bootstrap_scripts import AZURE_DEVOPS, GITHUB
from tools import clients

# The forges, and Microsoft Graph's permissions for applications, which the local cloud does not have.
_FORGE = '#!/bin/sh\ncase "$*" in *"--input -"*) cat >/dev/null ;; esac\necho an-id\n'
_AZ = """\
#!/bin/sh
case "$*" in
    rest\\ * | *" show "*--id\\ *workloadIdentityFederationIssuer) echo https://issuer.example.com ;;
    devops\\ *) echo an-id ;;
    *) exec "{az}" "$@" ;;
esac
"""


@pytest.fixture
def programs(tmp_path: Path, local_cloud: LocalEnvironment, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the stand-ins; `idstack` prints the rights of the local stack."""
    idstack = f'#!/bin/sh\nLOCALCLOUD_STATE_DIR="{local_cloud.state_dir}" exec "{PROJECT}/.venv/bin/idstack" "$@"\n'
    for name, text in (("gh", _FORGE), ("az", _AZ.format(az=clients.azure_cli() / "az")), ("idstack", idstack)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    for name, value in {
        **{"REPOSITORY": "acme/identities", "ORGANIZATION": "https://dev.azure.com/acme", "PROJECT": "identities"},
        **{"STACK": "local", "REVIEWERS": "kim", "LOCATION": "eastus", "IDSTACK": str(tmp_path / "idstack")},
        **{"TENANT_ID": local_cloud.tenant_id, "SUBSCRIPTION_ID": local_cloud.subscription_id},
        **{"BACKEND_ACCOUNT": "backuplocal", "BACKEND_CONTAINER": "etcd", "KEY_VAULT": "kv-etcd-local"},
        **{"KEY": "hc1-etcd"},
    }.items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.mark.parametrize("script", [GITHUB, AZURE_DEVOPS], ids=["github", "azure-devops"])
def test_it_prepares_azure_and_may_run_again(script: Path, programs: Path, local_cloud: LocalEnvironment) -> None:
    for _ in range(2):
        done = execute(local_cloud, "--as", "owner", "--", "bash", str(script), path=programs, directory=PROJECT)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "local is prepared." in done.stdout
