"""The process environment of a stack's commands: engine, backend and plugins.

`make`, the `idstack` command and the tests on the real engine all use it.

Local stacks have their own PULUMI_HOME with their provider plugins (`ops/stack/plugins.py`), backend and passphrase,
and sign in as the local cloud's deployer. A stack is local by its name, `local` or `local-<word>`: the name is fixed,
while the configuration may change (`ops/stack/configuration.py` requires that it agrees). Every other stack keeps the
caller's environment without the variables of tests and debugging, and has the backend that its file records
(`ops/stack/stack_document.py`). No engine takes a provider plugin from PATH: `refresh` and `destroy` do not run the
program and would use any plugin there.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from identity.aks.tokens import CACHE_VARIABLE
from identity.clouds import LOCAL_ENVIRONMENT_VARIABLE, LocalEnvironment
from ops.stack.errors import CommandError
from ops.stack.stack_document import BACKEND_VARIABLE as BACKEND_VARIABLE
from ops.stack.stack_document import backend_of, write_once

# Not resolved: a project directory may be made of links to another checkout.
ROOT: Final = Path(__file__).absolute().parents[2]
LOCAL_STACK: Final = "local"
LOCAL_STACKS: Final = rf"{LOCAL_STACK}(-[a-z0-9]+)*"
VENV: Final = ROOT / ".venv"
_ENGINE_RECORD: Final = ROOT / ".tools/engine.json"
# `python -m localcloud` reads the same variable; tests give each run a separate directory.
STATE_DIRECTORY_VARIABLE: Final = "LOCALCLOUD_STATE_DIR"
# The resources that the local stack looks up.
_SEED_VARIABLE: Final = "LOCALCLOUD_SEED"
# Cloud calls wait, they do not compute; the engine's default follows the number of cores.
_PARALLEL: Final = "32"
# Variables that would direct a local run to another account, backend, key or host.
_FOREIGN_PREFIXES: Final = ("AAD_", "ARM_", "AZURE_")
_FOREIGN: Final = frozenset(
    {
        "PULUMI_ACCESS_TOKEN",
        "PULUMI_CONFIG_PASSPHRASE",
        "PULUMI_STACK",
        "KUBECONFIG",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    }
)
# What would give program or plugins another interpreter, other modules, no end, or another cloud.
_DIVERTING: Final = frozenset(
    {"PULUMI_PYTHON_CMD", "PYTHONHOME", "PYTHONINSPECT", "PYTHONSAFEPATH", LOCAL_ENVIRONMENT_VARIABLE}
)
# The only variable of this program that a stack on Azure takes from its caller. The others are for tests.
_OWN_PREFIX: Final = "IDSTACK_"
_OWN_KEPT: Final = frozenset({CACHE_VARIABLE})
# Debugging variables that reveal secrets: gRPC traces with payloads, the engine's options as variables, the logs of a
# Terraform provider and of Azure's SDKs, what OpenTelemetry sends away, and the keys of TLS connections.
_REVEALING_PREFIXES: Final = (
    *("PULUMI_DEBUG_", "PULUMI_TRACING", "PULUMI_OTEL_", "OTEL_", "TF_LOG", "GRPC_TRACE", "GRPC_VERBOSITY"),
    *("GRPC_GO_LOG_", "AZURE_GO_SDK_LOG_", "AZURE_SDK_GO_LOGGING"),
)
_REVEALING: Final = frozenset(
    {
        "PULUMI_LOG_OTLP_ENDPOINT",
        "PULUMI_OPTION_EVENT_LOG",
        "PULUMI_OPTION_LOGFLOW",
        "PULUMI_OPTION_LOGTOSTDERR",
        "PULUMI_OPTION_SHOW_SECRETS",
        "PULUMI_OPTION_TRACING",
        "PULUMI_OPTION_VERBOSE",
        "SSLKEYLOGFILE",
    }
)


def project_name(root: Path) -> str:
    from identity import yaml_text  # slow, and `idstack token` runs at each sign-in of kubectl

    return str(yaml_text.load((root / "Pulumi.yaml").read_text(encoding="utf-8"))["name"])


class LocalPaths:
    """The files of the local stacks' engine, beside those of the local cloud in its state directory."""

    def __init__(self, state: Path) -> None:
        self.state = state
        # The endpoints of the local cloud, which writes it.
        self.record = state / "environment.json"
        # For the local cluster's API server (`identity.aks.tokens`), on tmpfs like the pods' mounts.
        self.tokens = state / "run/tokens"
        # The stacks' states, the passphrase that encrypts their secrets, and their configurations with the salts.
        self.engine = state / "pulumi"
        self.backend = self.engine / "backend"
        self.passphrase = self.engine / "passphrase"
        # PULUMI_HOME, with the plugin cache.
        self.home = self.engine / "home"
        self.plugins = self.home / "plugins"

    def cloud(self) -> LocalEnvironment | None:
        """The endpoints of the local cloud; None without one, or for one of another release: a start replaces it."""
        try:
            return LocalEnvironment.from_file(self.record)
        except (FileNotFoundError, ValueError):
            return None

    @property
    def ending(self) -> str:
        """The commands that end the local cloud: `local`, which others may share, is the last."""
        names = sorted((file.stem for file in self.backend.glob(".pulumi/stacks/*/*.json")), reverse=True)
        return ", ".join(f"`.venv/bin/idstack down --stack {name}`" for name in names or [LOCAL_STACK])

    def create(self) -> None:
        """Create directories and passphrase, once."""
        for directory in (self.state, self.engine, self.backend, self.home):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_once(self.passphrase, secrets.token_urlsafe(32))


def is_local(stack: str) -> bool:
    """Whether it is a stack of the local cloud, by its bare name."""
    return re.fullmatch(LOCAL_STACKS, stack) is not None


def policy_pack(stack: str, *, wanted: bool) -> list[str]:
    """The engine's option that runs the policies: always for stacks on Azure, if `wanted` for local ones."""
    return ["--policy-pack", "policies"] if wanted or not is_local(stack) else []


def pulumi_home(environ: Mapping[str, str]) -> Path:
    """PULUMI_HOME, which has the engine's login, its selected stacks and its plugins."""
    return Path(environ.get("PULUMI_HOME") or Path(environ.get("HOME") or Path.home(), ".pulumi"))


def local_paths(base: Mapping[str, str] = os.environ) -> LocalPaths:
    """The local stacks' files: below `.localcloud` of this checkout, or below LOCALCLOUD_STATE_DIR if `base` has it."""
    return LocalPaths(Path(base.get(STATE_DIRECTORY_VARIABLE) or ROOT / ".localcloud").absolute())


def variables(stack: str, base: Mapping[str, str] = os.environ, *, root: Path = ROOT) -> dict[str, str]:
    """The environment of a command for this stack of the project in `root`, derived from the caller's (`base`).

    Raises CommandError in a checkout that is not set up, and as `backend_of` does.
    """
    common = {
        "VIRTUAL_ENV": str(VENV),
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",
        # The engine checks no checksum: `ops/stack/plugins.py` installs missing plugins beforehand.
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_PARALLEL": base.get("PULUMI_PARALLEL", _PARALLEL),
        "PATH": os.pathsep.join([str(VENV / "bin"), _engine_directory(), base.get("PATH", os.defpath)]),
    }
    inherited = {name: value for name, value in base.items() if name not in _DIVERTING}
    if not is_local(stack):
        backend = backend_of(stack, root, base)
        return {
            **{name: value for name, value in inherited.items() if _may_reach_azure(name, value)},
            **common,
            **({BACKEND_VARIABLE: backend} if backend else {}),
        }
    paths = local_paths(base)
    return {
        **{
            name: value
            for name, value in inherited.items()
            if name.upper() not in _FOREIGN and not name.startswith(_FOREIGN_PREFIXES)
        },
        **common,
        "PULUMI_HOME": str(paths.home),
        # Without sidecar files: a kill can leave an empty one, which the engine cannot load.
        BACKEND_VARIABLE: f"{paths.backend.as_uri()}?metadata=skip",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(paths.passphrase),
        LOCAL_ENVIRONMENT_VARIABLE: str(paths.record),
        _SEED_VARIABLE: str(ROOT / "cloud/emulated/seed.yaml"),
        CACHE_VARIABLE: str(paths.tokens),
        **_signed_in_locally(paths.cloud()),
    }


def _signed_in_locally(cloud: LocalEnvironment | None) -> dict[str, str]:
    """The deployer's sign-in, in the variables of the real providers and SDKs; empty without a local cloud."""
    if cloud is None:
        return {}
    return {
        "ARM_TENANT_ID": cloud.tenant_id,
        "ARM_SUBSCRIPTION_ID": cloud.subscription_id,
        "ARM_CLIENT_ID": cloud.deployer_client_id,
        "ARM_CLIENT_CERTIFICATE_PATH": cloud.deployer_certificate,
        "REQUESTS_CA_BUNDLE": cloud.ca_file,
        "SSL_CERT_FILE": cloud.ca_file,
    }


def _may_reach_azure(name: str, value: str) -> bool:
    if name.startswith(_OWN_PREFIX):
        return name in _OWN_KEPT
    if name == "GODEBUG":  # other settings than the one that prints the headers of requests are of use
        return "http2debug" not in value
    return name not in _REVEALING and not name.startswith(_REVEALING_PREFIXES)


def _engine_directory() -> str:
    try:
        return str(json.loads(_ENGINE_RECORD.read_text())["bin"])
    except FileNotFoundError:
        raise CommandError("this checkout is not set up yet: run `make setup`") from None
