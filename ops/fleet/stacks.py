"""The stacks of a fleet, complete and in order, as `ops/fleet/file.py` builds them, and their files.

The engine and every other command read the stacks' own files (`Pulumi.<stack>.yaml`). They belong into git: a run
records its commit, and a renewal takes the configuration out of that commit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from identity import yaml_text
from identity.naming import dashed
from identity.settings import Settings
from identity.settings.schema.problems import NAMESPACE
from ops.fleet.reading import OperatorSettings
from ops.stack.environment import is_local
from ops.stack.errors import CommandError, message
from ops.stack.stack_document import BACKEND_VARIABLE, document_in, recorded

# As in every stack file: a default provider would act with whatever login it finds (components/azure/providers.py).
PROVIDERS_KEY: Final = "pulumi:disable-default-providers"
EXPLICIT_PROVIDERS: Final = ("azure-native", "azuread", "kubernetes")
# Names of waves; the shared stack is called so, too.
SHARED: Final = "shared"
CANARIES: Final = "canaries"


def shared_stack_name(environment: str) -> str:
    """Name of an environment's shared stack: `shared-dev`, in the local cloud `local-shared`."""
    return cluster_stack_name(environment, SHARED)


def cluster_stack_name(environment: str, cluster: str) -> str:
    """Name of a hosted cluster's stack: `hc1-dev`, in the local cloud, where `local` comes first, `local-hc1`.

    A dot counts as a hyphen, as in the names that the stack derives from the cluster's.
    """
    word = dashed(cluster)
    return f"{environment}-{word}" if is_local(environment) else f"{word}-{environment}"


@dataclass(frozen=True, kw_only=True)
class FleetStack:
    """One stack of a fleet.

    `cluster` is the hosted cluster's name, None for the shared stack. `config` has the project's keys without their
    namespace, as the stack file spells them; `settings` is what the program makes of them.
    """

    name: str
    environment: str
    cluster: str | None
    secrets_provider: str | None
    config: Mapping[str, Any]
    settings: Settings

    @property
    def configuration(self) -> dict[str, Any]:
        """Its configuration as Pulumi takes it: keys with their namespace, structures as they are."""
        own = {f"{NAMESPACE}:{key}": value for key, value in self.config.items()}
        return {PROVIDERS_KEY: list(EXPLICIT_PROVIDERS), **own}

    @property
    def file_name(self) -> str:
        return f"Pulumi.{self.name}.yaml"


@dataclass(frozen=True, kw_only=True)
class Wave:
    """Stacks that are brought up side by side, after every stack of the wave before has succeeded.

    `pause` is how long to wait before its first stack.
    """

    name: str
    stacks: tuple[FleetStack, ...]
    pause: timedelta = timedelta()


@dataclass(frozen=True, kw_only=True)
class FleetEnvironment:
    """One environment: its waves in order: the shared stack alone, if there is one, then the canaries, if any.

    `operator` says how the Pulumi Kubernetes Operator runs it; None if it does not.
    """

    name: str
    backend: str | None
    shared: FleetStack | None
    waves: tuple[Wave, ...]
    operator: OperatorSettings | None = None

    @property
    def stacks(self) -> tuple[FleetStack, ...]:
        """Every stack in the order in which they are brought up."""
        return tuple(stack for wave in self.waves for stack in wave.stacks)

    @property
    def is_local(self) -> bool:
        return is_local(self.name)


JOBS: Final = ("wave-1", "wave-2", "wave-3", "wave-4")
"""Of `.github/workflows/fleet.yml`, for the waves after the canaries."""
# GitHub's maximum of jobs in a matrix (docs.github.com, "Running variations of jobs in a workflow").
MOST_STACKS: Final = 256


def matrices(environment: FleetEnvironment) -> Mapping[str, Mapping[str, Any] | None]:
    """A matrix by the workflow's job, in their order: `{"stack": ["hc1-prod", ...]}`; None for a job without stacks.

    Raises CommandError for a local environment, and for more waves or stacks than the workflow can run.
    """
    if environment.is_local:
        raise CommandError(f"the environment {environment.name} is on this machine, which GitHub's jobs cannot reach")
    named = {wave.name: wave for wave in environment.waves}
    numbered = [wave for wave in environment.waves if wave.name not in (SHARED, CANARIES)]
    if len(numbered) > len(JOBS):
        raise CommandError(message("stacks.waves", environment=environment.name, waves=len(numbered), jobs=len(JOBS)))
    waves = {job: named.get(job) for job in (SHARED, CANARIES)} | dict.fromkeys(JOBS)
    waves |= dict(zip(JOBS, numbered, strict=False))
    for wave in environment.waves:
        if len(wave.stacks) > MOST_STACKS:
            name, stacks = environment.name, len(wave.stacks)
            raise CommandError(
                message("stacks.matrix", wave=wave.name, environment=name, stacks=stacks, most=MOST_STACKS)
            )
    return {job: {"stack": [stack.name for stack in wave.stacks]} if wave else None for job, wave in waves.items()}


_CONFIGURATION: Final = "config"
_SECRETS_PROVIDER: Final = "secretsprovider"


def write_file(stack: FleetStack, root: Path) -> bool:
    """Write the stack's file in the project `root`; returns whether that changed it.

    What the engine has written into it (`encryptedkey`) stays. Raises CommandError for a file that is not YAML, and for
    one with another secrets provider, which only the engine can exchange.
    """
    content = document_in(root / stack.file_name)
    if content.get(_CONFIGURATION) == stack.configuration:
        return False
    kept = {key: value for key, value in content.items() if key != _CONFIGURATION}
    meant = stack.secrets_provider
    provider = kept.setdefault(_SECRETS_PROVIDER, meant)
    if provider != meant:
        raise CommandError(message("stacks.another-provider", stack=stack.name, provider=provider, meant=meant))
    if provider is None:
        del kept[_SECRETS_PROVIDER]
    (root / stack.file_name).write_text(yaml_text.dump({**kept, _CONFIGURATION: stack.configuration}), encoding="utf-8")
    return True


def require_files(environment: FleetEnvironment, file: Path, root: Path) -> None:
    """Raise CommandError unless each stack's file is what the fleet `file` makes of it."""
    files = ", ".join(
        stack.file_name
        for stack in environment.stacks
        if document_in(root / stack.file_name).get(_CONFIGURATION) != stack.configuration
    )
    if files:
        raise CommandError(message("stacks.other-files", file=file, files=files, environment=environment.name))


def require_one_backend(environment: FleetEnvironment, root: Path) -> None:
    """Raise CommandError if PULUMI_BACKEND_URL or a stack's file names another backend than the fleet file.

    The fleet would create the stacks a second time.
    """
    name, backend = environment.name, environment.backend
    if backend is None:
        return
    variable = os.environ.get(BACKEND_VARIABLE)
    if variable not in (None, "", backend):
        raise CommandError(message("stacks.another-backend", environment=name, backend=backend, value=variable))
    others = {stack.file_name: recorded(stack.name, root) for stack in environment.stacks}
    if files := "\n".join(f"- {file}: {other}" for file, other in others.items() if other not in (None, backend)):
        raise CommandError(message("stacks.other-backends", environment=name, backend=backend, files=files))
