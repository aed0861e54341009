"""Where the consumer of a mount finds its credential file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

Kind: TypeAlias = Literal["file", "env", "cloud-config", "token"]

# The key by which cloud-provider-azure, the CSI drivers and the KMS plugin name the file.
_CLOUD_CONFIG_KEY: Final = "aadMSIDataPlaneIdentityPath"


class CredentialNotNamedError(ValueError):
    """The variable or document does not name the credential file."""


@dataclass(frozen=True)
class CredentialSource:
    """`file:PATH`, `env:NAME` of a variable with the path, `cloud-config:PATH` of a document that names it, or
    `token:PATH` of a service account's token.

    `mount_root` is put before absolute paths that do not lie below it already: set where pods are processes without
    mount namespaces of their own.
    """

    kind: Kind
    name: str
    mount_root: Path | None = None

    @classmethod
    def parse(cls, text: str, mount_root: Path | None) -> CredentialSource:
        """Read the argument; raises ValueError."""
        kind, _, name = text.partition(":")
        for known in get_args(Kind):
            if kind == known and name:
                return cls(known, name, mount_root)
        raise ValueError(f"found {text!r}; accepted: file:PATH, env:NAME, cloud-config:PATH or token:PATH")

    def path(self) -> Path:
        """The credential file's path; raises `CredentialNotNamedError`. It need not exist yet."""
        match self.kind:
            case "file" | "token":
                return self._located(self.name)
            case "env":
                return self._located(self._from_environment())
            case "cloud-config":
                return self._located(self._from_cloud_config())

    def _from_environment(self) -> str:
        if path := os.environ.get(self.name):
            return path
        raise CredentialNotNamedError(
            f"variable {self.name}: found none; accepted: the path of the credential file; set it on the container"
        )

    def _from_cloud_config(self) -> str:
        document = self._located(self.name)
        try:
            path = json.loads(document.read_bytes())[_CLOUD_CONFIG_KEY]
        except OSError as error:
            found = f"no readable document ({error.strerror})"
        except (ValueError, TypeError, KeyError):
            found = f'no JSON object with "{_CLOUD_CONFIG_KEY}"'
        else:
            if isinstance(path, str) and path:
                return path
            found = f'an empty "{_CLOUD_CONFIG_KEY}"'
        raise CredentialNotNamedError(
            f"cloud config {document}: found {found}; accepted: the path of the credential file under that key; "
            "check the Secret that holds the document, and its mount"
        )

    def _located(self, path: str) -> Path:
        if self.mount_root is None or not Path(path).is_absolute() or Path(path).is_relative_to(self.mount_root):
            return Path(path)
        return self.mount_root / path.lstrip("/")
