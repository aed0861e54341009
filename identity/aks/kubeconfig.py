"""Kubeconfigs, read and merged as kubectl does.

Source: client-go's tools/clientcmd (loader.go, validation.go, api/v1/types.go); `tests/apiserver/test_kubeconfigs.py`
compares with kubectl.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from identity.aks.cluster_user import content
from identity.azure.errors import AccessError
from identity.private_files import write_private
from identity.yaml_text import dump, load_as_go

_SECTIONS: Final = {"clusters": "cluster", "contexts": "context", "users": "user"}
# Paths relative to the kubeconfig that has them.
_PATHS: Final = {
    "clusters": ("certificate-authority",),
    "contexts": (),
    "users": ("client-certificate", "client-key", "tokenFile"),
}
# Members and their types, as JSON; `bytes` is base64, "*" any member. Others are ignored, as client-go does.
_EXTENSIONS: Final = [{"name": str}]
_SHAPE: Final[Mapping[str, Any]] = {
    "kind": str,
    "apiVersion": str,
    "current-context": str,
    "preferences": {"colors": bool, "extensions": _EXTENSIONS},
    "extensions": _EXTENSIONS,
    "clusters": [
        {
            "name": str,
            "cluster": {
                **dict.fromkeys(("server", "tls-server-name", "certificate-authority", "proxy-url"), str),
                **dict.fromkeys(("insecure-skip-tls-verify", "disable-compression"), bool),
                "certificate-authority-data": bytes,
                "extensions": _EXTENSIONS,
            },
        }
    ],
    "contexts": [
        {
            "name": str,
            "context": {**dict.fromkeys(("cluster", "user", "namespace"), str), "extensions": _EXTENSIONS},
        }
    ],
    "users": [
        {
            "name": str,
            "user": {
                **dict.fromkeys(("client-certificate", "client-key", "token", "tokenFile", "as", "as-uid"), str),
                **dict.fromkeys(("username", "password"), str),
                **dict.fromkeys(("client-certificate-data", "client-key-data"), bytes),
                "as-groups": [str],
                "as-user-extra": {"*": [str]},
                "auth-provider": {"name": str, "config": {"*": str}},
                "exec": {
                    **dict.fromkeys(("command", "apiVersion", "installHint", "interactiveMode"), str),
                    "args": [str],
                    "env": [{"name": str, "value": str}],
                    "provideClusterInfo": bool,
                },
                "extensions": _EXTENSIONS,
            },
        }
    ],
}
_WORDS: Final = {str: "a text", bool: "true or false", bytes: "base64"}


class MalformedKubeconfigError(AccessError):
    """A kubeconfig that cannot be used: which one, what is wrong, how to fix it."""


class Kubeconfig:
    """A kubeconfig's document. `name` identifies it in errors; relative paths in it start at `directory`."""

    def __init__(self, document: Mapping[str, Any], name: str, directory: Path | None = None) -> None:
        self._document = dict(document)
        self._directory = directory
        self.name = name

    @classmethod
    def parse(cls, data: str | bytes, name: str, directory: Path | None = None) -> Kubeconfig:
        """Parse YAML or JSON; raises MalformedKubeconfigError."""
        try:
            document = load_as_go(data)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
            raise MalformedKubeconfigError(f"{name} is not YAML{place}; {_FIX}") from None
        if document is None:
            document = {}
        if not isinstance(document, dict):
            raise MalformedKubeconfigError(f"{name} is not a kubeconfig: a mapping is expected; {_FIX}")
        if problems := list(_wrong_types(document, _SHAPE, "")) or list(_wrong_entries(document)):
            raise MalformedKubeconfigError(f"{name} is not a kubeconfig: {'; '.join(problems)}. {_FIX.capitalize()}")
        return cls(document, name, directory)

    @classmethod
    def read(cls, path: Path) -> Kubeconfig:
        """Read a file; a missing one is an empty kubeconfig. Raises MalformedKubeconfigError."""
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            data = b""
        except OSError as error:
            raise MalformedKubeconfigError(f"{path} cannot be read ({error.strerror}); {_FIX}") from None
        return cls.parse(data, str(path), path.absolute().parent)

    @property
    def current_context(self) -> str | None:
        return self._document.get("current-context") or None

    def chosen(self, context: str | None = None) -> str:
        """`context`, else the current one, else the only one; raises MalformedKubeconfigError."""
        contexts = self.entries("contexts")
        name = context or self.current_context or (next(iter(contexts)) if len(contexts) == 1 else None)
        if not contexts:
            raise MalformedKubeconfigError(f"{self.name} has no context; {_FIX}")
        if name is None:
            raise MalformedKubeconfigError(f"{self.name} has no current context; name one of {_names(contexts)}")
        if name not in contexts:
            raise MalformedKubeconfigError(f'{self.name} has no context "{name}"; it has {_names(contexts)}')
        for section in ("cluster", "user"):
            if contexts[name].get(section) not in self.entries(f"{section}s"):
                raise MalformedKubeconfigError(
                    f'{self.name}: the context "{name}" names the {section} "{contexts[name].get(section) or ""}", '
                    f"which is not there; {_FIX}"
                )
        return name

    def entries(self, section: str) -> dict[str, Any]:
        """The entries of `clusters`, `contexts` or `users`, by name; paths in them are absolute."""
        return {name: self._resolved(section, entry) for name, entry in self._entries(section).items()}

    def _entries(self, section: str) -> dict[str, Any]:
        entries = (entry or {} for entry in self._document.get(section) or [])
        return {entry.get("name") or "": entry.get(_SECTIONS[section]) or {} for entry in entries}

    def _resolved(self, section: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        """The entry with absolute paths, if the kubeconfig's own directory is known."""
        resolved = dict(entry)
        if self._directory is None:
            return resolved
        for field in _PATHS[section]:
            if resolved.get(field):
                resolved[field] = os.path.normpath(self._directory / resolved[field])
        command = (resolved.get("exec") or {}).get("command") or ""
        if "/" in command:  # the rest is looked for on PATH
            resolved["exec"] = {**resolved["exec"], "command": os.path.normpath(self._directory / command)}
        return resolved

    def only(self, context: str, *, user: Mapping[str, Any]) -> Kubeconfig:
        """One context with its cluster and another `user`."""
        chosen = self.entries("contexts")[context]
        cluster = chosen["cluster"]
        return Kubeconfig(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": cluster, "cluster": self.entries("clusters")[cluster]}],
                "contexts": [{"name": context, "context": chosen}],
                "users": [{"name": chosen["user"], "user": dict(user)}],
                "current-context": context,
            },
            self.name,
        )

    def flattened(self) -> Kubeconfig:
        """A copy with the content of files that are named by relative paths, which can be read elsewhere.

        Returns this object if there is no such path. Raises AccessError for a file that cannot be read.
        """
        kubeconfig = self
        for section, paths in _PATHS.items():
            changed = {}
            for name, entry in self._entries(section).items():
                if (resolved := self._resolved(section, entry)) == entry:
                    continue
                for path in paths[:2]:  # a token file is read again and again
                    if resolved.get(path) != entry.get(path):
                        data = base64.b64encode(content(resolved, path) or b"").decode()
                        resolved = {key: value for key, value in resolved.items() if key != path} | {
                            f"{path}-data": data
                        }
                changed[name] = resolved
            kubeconfig = kubeconfig.with_entries(section, changed) if changed else kubeconfig
        return kubeconfig

    def has(self, section: str, name: str) -> bool:
        return name in self._entries(section)

    def with_entries(self, section: str, added: Mapping[str, Any]) -> Kubeconfig:
        """A copy with these entries by name, which replace those of the same name; the others stay as written."""
        entries = [
            {"name": name, _SECTIONS[section]: entry} for name, entry in {**self._entries(section), **added}.items()
        ]
        return self._changed({section: entries})

    def with_current_context(self, name: str) -> Kubeconfig:
        """A copy with another current context."""
        return self._changed({"current-context": name})

    def _changed(self, members: Mapping[str, Any]) -> Kubeconfig:
        document = {"apiVersion": "v1", "kind": "Config", **self._document, **members}
        return Kubeconfig(document, self.name, self._directory)

    def to_json(self) -> str:
        """One line with sorted keys, which is a kubeconfig as well: equal documents are equal strings."""
        return json.dumps(self._document, sort_keys=True, separators=(",", ":"))

    def to_yaml(self) -> str:
        """The document as a file has it."""
        return dump(self._document)


_FIX: Final = "fix the file, or name another"


def _wrong_types(value: object, shape: object, place: str) -> Iterator[str]:
    """Values of a wrong type, in words, without the value itself; null counts as absent."""
    if value is None:
        return
    if isinstance(shape, Mapping):
        if not isinstance(value, Mapping):
            yield f"{place} has to be a mapping, and is {_found(value)}"
            return
        for name, item in value.items():
            member = shape.get(name, shape.get("*"))
            yield from () if member is None else _wrong_types(item, member, f"{place}.{name}".lstrip("."))
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{place} has to be a list, and is {_found(value)}"
            return
        for index, item in enumerate(value):
            yield from _wrong_types(item, shape[0], f"{place}[{index}]")
    elif not isinstance(value, str if shape is bytes else shape):  # type: ignore[arg-type]
        fix = " (in quotes it is a text)" if shape is str and isinstance(value, bool | int | float) else ""
        yield f"{place} has to be {_WORDS[shape]}, and is {_found(value)}{fix}"  # type: ignore[index]
    elif shape is bytes and not _is_base64(str(value)):
        yield f"{place} has to be base64"


def _found(value: object) -> str:
    kinds: Mapping[type, str] = {bool: "a boolean", int: "a number", float: "a number", str: "a text", list: "a list"}
    return kinds.get(type(value), "a mapping")


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _wrong_entries(document: Mapping[str, Any]) -> Iterator[str]:
    """Another kind of document, and duplicate names, in a document with the right types."""
    kind, version = document.get("kind") or "Config", document.get("apiVersion") or "v1"
    if (kind, version) != ("Config", "v1"):
        yield f"it is a {kind} of {version}, not a Config of v1"
    for section, member in _SECTIONS.items():
        names = [(entry or {}).get("name") or "" for entry in document.get(section) or []]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f'the {member} "{name}" stands there {names.count(name)} times'


def _names(entries: Mapping[str, Any]) -> str:
    return ", ".join(sorted(entries))


# How long to wait for another writer, in seconds; kubectl itself does not wait.
_PATIENCE: Final = 10.0
_PAUSE: Final = 0.1


def usual_kubeconfigs(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The files of KUBECONFIG in their order, or the one in the home directory."""
    named = dict.fromkeys(name for name in environ.get("KUBECONFIG", "").split(os.pathsep) if name)
    return tuple(map(Path, named)) or (Path.home() / ".kube" / "config",)


def add_context(
    files: Sequence[Path],
    added: Kubeconfig,
    patience: float = _PATIENCE,
    sleep: Callable[[float], object] = time.sleep,
) -> list[Path]:
    """Write the entries of `added`, and its current context, into the files that kubectl would change; returns these.

    An entry replaces the first one of its name, so that no earlier file hides it; a new one goes into the first file
    that exists. Raises MalformedKubeconfigError, also when another writer holds a file for `patience`.
    """
    with ExitStack() as locks:
        for file in sorted(files):
            locks.enter_context(_locked(file, patience, sleep))
        read = {file: Kubeconfig.read(file) for file in files}
        usual = next((file for file in files if file.exists()), files[0])
        changed: dict[Path, Kubeconfig] = {}
        for section in ("clusters", "contexts", "users"):
            for name, entry in added.entries(section).items():
                file = next((candidate for candidate in files if read[candidate].has(section, name)), usual)
                changed[file] = changed.get(file, read[file]).with_entries(section, {name: entry})
        if added.current_context is not None:
            changed[usual] = changed.get(usual, read[usual]).with_current_context(added.current_context)
        for file, content in changed.items():
            _write(file, content)
        return list(changed)


def _write(path: Path, content: Kubeconfig) -> None:
    """Replace the file in one step, 0600; a link stays one."""
    try:
        write_private(path.resolve(), content.to_yaml())
    except OSError as error:
        raise _unwritable(path, error) from None


@contextmanager
def _locked(path: Path, patience: float, sleep: Callable[[float], object]) -> Iterator[None]:
    """Hold the lock that kubectl takes, a file beside the kubeconfig."""
    lock, deadline = Path(f"{path}.lock"), time.monotonic() + patience
    while True:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            break
        except FileExistsError:
            if time.monotonic() >= deadline:
                raise MalformedKubeconfigError(
                    f"{path} is being written by another program: {lock} is there; nothing was changed. If no kubectl "
                    f"runs any more, `rm {shlex.quote(str(lock))}`"
                ) from None
            sleep(_PAUSE)
        except OSError as error:
            raise _unwritable(path, error) from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> MalformedKubeconfigError:
    return MalformedKubeconfigError(f"{path} cannot be written ({error.strerror}); name another with --file")
