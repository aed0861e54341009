"""The configuration files of local stacks: their validation, and the copies that the engine reads.

The engine keeps a stack's encryption salt in its configuration file. A local stack's passphrase belongs to this
machine, so its salt must not get into the file in the repository. The stack is created from a project of the same name
beside its state, and the engine reads a copy of the configuration with the salt in it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from identity import yaml_text
from identity.clouds import LOCAL_CLOUD
from identity.settings.schema.problems import Place
from identity.settings.stack_file import own_values
from ops.stack.environment import LocalPaths, is_local, project_name
from ops.stack.errors import CommandError, message
from ops.stack.stack_document import BACKEND_VARIABLE, replace_file
from ops.stack.state import State

_SALT: Final = "encryptionsalt"
# Eight bytes, and six encrypted ones with a nonce and a tag (pulumi/pulumi `pkg/secrets/passphrase/manager.go`).
_WHOLE_SALT: Final = re.compile(r"v1:[\w+/]{11}=:v1:[\w+/]{16}:[\w+/]{30}==")


def require_content(name: str, document: Mapping[str, Any]) -> None:
    """Raise CommandError for a stack's file of this name without any configuration."""
    if not document.get("config"):
        of = name.removeprefix("Pulumi.").removesuffix(".yaml")
        source = "copy Pulumi.local.yaml" if is_local(of) else f"`.venv/bin/idstack init {of}` writes it"
        raise CommandError(f"{name} is empty, or has nothing under `config:`; {source}. Nothing was started")


def require_local_cloud(name: str, document: Mapping[str, Any]) -> None:
    """Raise CommandError unless the document in a stack's file of this name has `cloud: local`.

    The emulated plugins would refuse another cloud's stack as well, but with a message that does not mention its name.
    """
    require_content(name, document)
    cloud = own_values(document).get("cloud")
    if cloud != LOCAL_CLOUD:
        raise CommandError(message("configuration.another-cloud", file=name, cloud=cloud))


def shared_stack_of(written: Mapping[str, Any]) -> str | None:
    """Bare name of the stack that the values of a stack's file name as its shared one."""
    named = written.get("sharedStack")
    return named.rpartition("/")[2] if isinstance(named, str) and named else None


def named_clusters(hosted_clusters: Any) -> Iterator[Mapping[str, Any]]:
    """The entries of `hostedClusters` in a stack's file that have a name; the program refuses others."""
    for cluster in hosted_clusters if isinstance(hosted_clusters, list) else ():
        if isinstance(cluster, Mapping) and isinstance(cluster.get("name"), str):
            yield cluster


def local_copy(source: Path, paths: LocalPaths) -> Path:
    """Copy a local stack's configuration, with the salt of this machine's passphrase; returns the copy.

    The stack must exist. Raises CommandError as `with_salt` does.
    """
    salt = salt_of(paths.engine / source.name)
    copy = paths.engine / f"configuration.{source.name.removeprefix('Pulumi.')}"
    text = source.read_text()
    replace_file(copy, text if salt is None else with_salt(text, salt, source.name))
    return copy


def salt_of(file: Path) -> str | None:
    """The salt in the engine's own file of a stack; None without one."""
    document = None
    if file.exists():
        with suppress(yaml.YAMLError):  # a loss of power has cut it
            document = yaml_text.load(file.read_text())
    return document.get(_SALT) if isinstance(document, dict) else None


def keep_salt(file: Path, state: Callable[[], State]) -> None:
    """Write the salt of the state into the engine's own file of a stack, if that does not have all of it.

    After a loss of power it is empty or cut: the engine does not sync it (pulumi/pulumi
    `sdk/go/common/workspace/project.go`, `save`). A state before its first run has no salt; the engine creates one.
    """
    if not _WHOLE_SALT.fullmatch(salt_of(file) or ""):
        provider = state()["deployment"].get("secrets_providers")
        if provider and (salt := provider.get("state", {}).get("salt")):
            replace_file(file, f"{_SALT}: {salt}\n")


def with_salt(configuration: str, salt: str, name: str) -> str:
    """A stack's configuration (YAML) with this `encryptionsalt` instead of its own.

    A bare `pulumi preview` in the checkout writes the salt of its caller's passphrase. Only secret values depend on
    it; raises CommandError if `configuration`, the content of the file `name`, has any.
    """
    document = yaml_text.load(configuration)
    if document.get(_SALT) not in (None, salt) and has_secret(document.get("config")):
        raise CommandError(message("configuration.secrets", file=name))
    lines = (line for line in configuration.splitlines(keepends=True) if not line.startswith(f"{_SALT}:"))
    return "".join([f"{_SALT}: {salt}\n", *lines])


def write_project(directory: Path, root: Path) -> None:
    """Write a project without a program into a directory, with the name of the one in `root`.

    An existing one is replaced atomically: the stacks of a fleet are prepared in parallel.
    """
    replace_file(directory / "Pulumi.yaml", f"name: {project_name(root)}\nruntime: python\n")


def remove_unreadable(paths: LocalPaths) -> None:
    """Delete broken ones of the local stacks: the records of selected stacks, and the version of the backend's layout.

    The engine writes both atomically (`pkg/workspace/workspace.go`; gocloud.dev/blob/fileblob), so that they are not
    half-written by another command. A broken one fails every command: "unable to read workspace settings", "corrupt
    store".
    """
    for file in (*(paths.home / "workspaces").glob("*-workspace.json"), paths.backend / ".pulumi/meta.yaml"):
        with suppress(FileNotFoundError):  # another command may have deleted it
            try:
                document = yaml_text.load(file.read_text(encoding="utf-8"))
                is_sound = isinstance(document, dict) and (
                    file.suffix == ".json" or type(document.get("version")) is int
                )
            except (UnicodeDecodeError, yaml.YAMLError):
                is_sound = False
            if not is_sound:
                file.unlink()


@contextmanager
def writing_offline(
    stack: str, root: Path, environment: Mapping[str, str]
) -> Iterator[tuple[Path, dict[str, str], tuple[str, ...]]]:
    """Directory, environment and options with which `pulumi config set` writes the stack's file without its state.

    The engine needs some stack for that, which is in a temporary backend. So a mistake in the file can be corrected
    before a login. Raises CommandError if the engine cannot start.
    """
    with TemporaryDirectory(prefix="idstack-") as folder:
        backend, project = Path(folder, "backend"), Path(folder, "project")
        for directory in (backend, project):
            directory.mkdir()
        write_project(project, root)
        offline = {
            **{key: value for key, value in environment.items() if key != "PULUMI_CONFIG_PASSPHRASE_FILE"},
            BACKEND_VARIABLE: backend.as_uri(),
            "PULUMI_HOME": str(Path(folder, "home")),
            "PULUMI_CONFIG_PASSPHRASE": "",
        }
        command = ["pulumi", "stack", "init", stack, "--non-interactive"]
        done = subprocess.run(command, cwd=project, env=offline, capture_output=True, text=True)
        if done.returncode:
            raise CommandError(f"`{' '.join(command)}`: {done.stderr.strip()}")
        yield project, offline, ("--config-file", str(root / f"Pulumi.{stack}.yaml"))


def has_secret(value: Any) -> bool:
    """Whether a value of the configuration is encrypted, or has such a value in it."""
    return any(True for _ in secrets(value))


def secrets(value: Any, place: Place = ()) -> Iterator[Place]:
    """The places of encrypted values (`secure: <cipher text>`) in a value of the configuration."""
    if isinstance(value, Mapping):
        if value.keys() == {"secure"}:
            yield place
            return
        for key, item in value.items():
            yield from secrets(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from secrets(item, (*place, index))
