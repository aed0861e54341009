"""YAML that every reader takes for the same values: for Pulumi and for Kubernetes, which read it with Go's library."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

# Numbers for Go's library (yaml.v3 resolve.go), some of which PyYAML would write without quotes: `12e3`, `0o17`.
_NUMBER: Final = re.compile(r"[-+]?(0[xobXOB][0-9a-fA-F_]+|[0-9._]+([eE][-+]?[0-9]+)?)", re.ASCII)


class _Dumper(yaml.SafeDumper):
    """Without anchors: what two objects have in common is written in both."""

    def ignore_aliases(self, data: object) -> bool:
        """Whatever `data` is."""
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """A text, in quotes if it could be read as a number."""
        style = '"' if _NUMBER.fullmatch(text) else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)


def yaml_text(documents: Iterable[Mapping[str, Any]]) -> str:
    """The documents one after the other, keys in their order, a value on one line."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
