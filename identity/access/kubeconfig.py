"""Kubeconfigs: read, turned into ones that sign in by themselves, merged, written.

Three generations are read: the `azure` auth-provider, which client-go removed in 0.26, kubelogin's exec block, and our
own. Tenant, server application and cloud of the first two are carried over; tokens in them are dropped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import yaml

from identity.access.errors import AccessError
from identity.access.login import AKS_SERVER_APP_ID
from identity.clouds import CLOUDS
from identity.private_files import write_private

_SECTIONS: Final = {"clusters": "cluster", "contexts": "context", "users": "user"}
# kubelogin and the auth-provider take a shorter name as well.
_ENVIRONMENTS: Final[Mapping[str, str]] = {
    **{cloud.name.upper(): cloud.authority_host for cloud in CLOUDS.values()},
    "AZUREUSGOVERNMENT": CLOUDS["AzureUSGovernmentCloud"].authority_host,
}


class MalformedKubeconfig(AccessError):
    """A kubeconfig that cannot be used: which one, what is wrong, how to fix it."""


@dataclass(frozen=True)
class LegacyLogin:
    """How an older kubeconfig signs in; None for what it does not specify."""

    tenant_id: str | None = None
    server_id: str | None = None
    authority_host: str | None = None


class Kubeconfig:
    """A kubeconfig's document. `name` identifies it in errors."""

    def __init__(self, document: Mapping[str, Any], name: str) -> None:
        self._document = dict(document)
        self._name = name

    @classmethod
    def parse(cls, text: str, name: str) -> Kubeconfig:
        """Out of YAML or JSON; raises MalformedKubeconfig."""
        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
            raise MalformedKubeconfig(f"{name} is no YAML{place}; {_FIX}") from None
        if document is None:
            document = {}
        if not isinstance(document, dict):
            raise MalformedKubeconfig(f"{name} is no kubeconfig: a mapping is expected; {_FIX}")
        for section, member in _SECTIONS.items():
            entries = document.get(section) or []
            if not isinstance(entries, list) or not all(_is_entry(each, member) for each in entries):
                raise MalformedKubeconfig(
                    f"{name} is no kubeconfig: {section} has to be a list of entries with name and {member}; {_FIX}"
                )
        return cls(document, name)

    @classmethod
    def read(cls, path: Path) -> Kubeconfig:
        """A file; one that is not there is an empty kubeconfig. Raises MalformedKubeconfig."""
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            text = ""
        except (OSError, UnicodeDecodeError) as error:
            raise MalformedKubeconfig(f"{path} cannot be read ({error}); {_FIX}") from None
        return cls.parse(text, str(path))

    @property
    def current_context(self) -> str | None:
        """The name of the current context."""
        return self._document.get("current-context") or None

    def chosen(self, context: str | None = None) -> str:
        """`context`, else the current one, else the only one; raises MalformedKubeconfig."""
        contexts = self.entries("contexts")
        name = context or self.current_context or (next(iter(contexts)) if len(contexts) == 1 else None)
        if name is None:
            raise MalformedKubeconfig(f"{self._name} has no current context; name one of {_names(contexts)}")
        if name not in contexts:
            raise MalformedKubeconfig(f'{self._name} has no context "{name}"; it has {_names(contexts)}')
        for section in ("cluster", "user"):
            if contexts[name].get(section) not in self.entries(f"{section}s"):
                raise MalformedKubeconfig(
                    f'{self._name}: the context "{name}" names the {section} "{contexts[name].get(section)}", which is '
                    f"not there; {_FIX}"
                )
        return name

    def entries(self, section: str) -> dict[str, Any]:
        """The entries of `clusters`, `contexts` or `users`, by name."""
        member = _SECTIONS[section]
        return {each["name"]: each[member] or {} for each in self._document.get(section) or []}

    def only(self, context: str, *, user: Mapping[str, Any]) -> Kubeconfig:
        """One context with its cluster, and `user` instead of whatever signed in before."""
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
            self._name,
        )

    def merged(self, other: Kubeconfig) -> Kubeconfig:
        """This one with the other's entries, which win where a name is equal; its current context is the other's."""
        document = {"apiVersion": "v1", "kind": "Config", **self._document}
        for section, member in _SECTIONS.items():
            entries = {**self.entries(section), **other.entries(section)}
            document[section] = [{"name": name, member: entry} for name, entry in entries.items()]
        document["current-context"] = other.current_context or self.current_context or ""
        return Kubeconfig(document, self._name)

    def to_json(self) -> str:
        """One line with sorted keys, which is a kubeconfig as well: equal documents are equal strings."""
        return json.dumps(self._document, sort_keys=True, separators=(",", ":"))

    def write(self, path: Path) -> None:
        """Replace the file in one step, 0600; raises MalformedKubeconfig when that is impossible."""
        target = path.resolve()  # a link stays one
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(target, yaml.safe_dump(self._document, sort_keys=False))
        except OSError as error:
            raise MalformedKubeconfig(
                f"{path} cannot be written ({error.strerror}); name another with --file"
            ) from None


def is_convertible(user: Mapping[str, Any]) -> bool:
    """Whether a user signs in to AKS by one of the older ways, or by ours."""
    provider = user.get("auth-provider") or {}
    command = Path(str((user.get("exec") or {}).get("command") or "")).name
    return provider.get("name") == "azure" or command in {"kubelogin", "kubelogin.exe", "idstack"}


def legacy_login_of(user: Mapping[str, Any], name: str) -> LegacyLogin:
    """How a user's block signs in; raises MalformedKubeconfig for a cluster that no token of today's can reach."""
    if (user.get("auth-provider") or {}).get("name") == "azure":
        return _of_auth_provider(user["auth-provider"].get("config") or {}, name)
    return _of_arguments((user.get("exec") or {}).get("args") or [], name)


def _of_auth_provider(config: Mapping[str, str], name: str) -> LegacyLogin:
    server = config.get("apiserver-id")
    if server is not None and server != AKS_SERVER_APP_ID:
        raise MalformedKubeconfig(
            f'user "{name}" is of a cluster with server and client applications of its own ({server}): the legacy '
            "integration, at which no service principal can sign in. Move the cluster to AKS-managed Entra ID with "
            "`az aks update --enable-aad`, then fetch its kubeconfig again"
        )
    return LegacyLogin(config.get("tenant-id"), server, _authority(config.get("environment"), name))


def _of_arguments(arguments: Sequence[str], name: str) -> LegacyLogin:
    values = dict(pairwise(arguments))
    # kubelogin's own short forms.
    tenant, server = values.get("--tenant-id", values.get("-t")), values.get("--server-id")
    host = values.get("--authority-host") or _authority(values.get("--environment", values.get("-e")), name)
    return LegacyLogin(tenant, server, host)


def _authority(environment: str | None, name: str) -> str | None:
    if environment is None:
        return None
    if environment.upper() not in _ENVIRONMENTS:
        # kubelogin takes every name it does not know for the public cloud.
        raise MalformedKubeconfig(
            f'user "{name}" is in the cloud "{environment}"; accepted are {", ".join(CLOUDS)}: correct the name, or '
            "give --authority-host"
        )
    return _ENVIRONMENTS[environment.upper()]


_FIX: Final = "fix the file, or name another"


def _is_entry(entry: object, member: str) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and member in entry
        and isinstance(entry[member] or {}, dict)
    )


def _names(entries: Mapping[str, Any]) -> str:
    return ", ".join(sorted(entries)) or "none"
