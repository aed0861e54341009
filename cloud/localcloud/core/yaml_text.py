"""Writes YAML, and reads it as Go programs do: Pulumi, kubectl, Helm, kustomize and the CSI drivers.

PyYAML resolves YAML 1.1, go.yaml.in/yaml/v2 (behind sigs.k8s.io/yaml) and v3 a mixture of 1.1 and 1.2 (resolve.go of
each): `716064e0` and `0o17` are numbers to Go alone, `y` is a boolean to v2 alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import yaml

_Loader = TypeVar("_Loader", bound=type[Any])

# Everything that one of them reads as a number, and a little more.
_NUMBER: Final = re.compile(r"[-+]?(0[xobXOB][0-9a-fA-F_]*|[0-9._]+([eE][-+_0-9]*)?)", re.ASCII)
_BOOLEAN: Final = re.compile(r"y|n|yes|no|on|off|true|false|null|~", re.IGNORECASE)
# YAML 1.1 ends a line with the first three, and the byte-order mark is lost.
_ESCAPED: Final = re.compile("[\x85\u2028\u2029\ufeff]")


class _Dumper(yaml.SafeDumper):
    """Without anchors: what two objects have in common is written in both."""

    def ignore_aliases(self, data: object) -> bool:
        """Whatever `data` is."""
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """A string, in quotes if a reader could take it for another type."""
        is_quoted = _NUMBER.fullmatch(text) or _BOOLEAN.fullmatch(text) or _ESCAPED.search(text)
        return self.represent_scalar("tag:yaml.org,2002:str", text, style='"' if is_quoted else None)


_Dumper.add_representer(str, _Dumper.represent_text)


def dump(*documents: object, width: int = 10_000) -> str:
    """The documents one after the other, keys in their order; texts are folded at `width`."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=width)


def _resolving(booleans: str) -> Callable[[_Loader], _Loader]:
    """Gives a loader the plain scalars of Go's library with these booleans; a date is a text, as in JSON."""

    def decorated(loader: _Loader) -> _Loader:
        loader.yaml_implicit_resolvers = {}
        for tag, pattern, first in (
            ("bool", booleans, {word[0] for word in booleans.split("|")}),
            ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
            ("merge", r"<<", "<"),
            ("int", r"[-+]?(0[bB][01_]+|0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]*|[1-9][0-9_]*)", "-+0123456789"),
            (
                "float",
                r"[-+]?([0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9_]+)?|\.[0-9]+([eE][-+]?[0-9]+)?)",
                "-+0123456789.",
            ),
            ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+."),
        ):
            loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z", re.ASCII), first)
        for tag in ("int", "float"):
            loader.add_constructor(f"tag:yaml.org,2002:{tag}", _number)
        return loader

    return decorated


def _number(_: Any, node: yaml.ScalarNode) -> int | float | str:
    """An integer by its prefix, octal after a leading zero; a floating-point number; else the text."""
    text = node.value.replace("_", "").lower()
    try:
        return int(re.sub(r"^([-+]?)0(?=[0-7])", r"\g<1>0o", text), 0)
    except ValueError:
        pass
    try:
        return float(text.replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        return str(node.value)


@_resolving("true|True|TRUE|false|False|FALSE")
class _V3Loader(yaml.CSafeLoader):
    yaml_implicit_resolvers: Any


@_resolving("y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF")
class _V2Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: Any
    bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}  # noqa: RUF012


def load(data: str | bytes) -> Any:
    """The only document as gopkg.in/yaml.v3, and so Pulumi, reads it; None if it is empty. Raises YAMLError."""
    try:
        return yaml.load(data, _V3Loader)  # noqa: S506 - a CSafeLoader
    except yaml.YAMLError:
        return yaml.safe_load(data)  # ten times slower, with the better message


def load_all_as_go(data: str | bytes) -> Iterator[Any]:
    """The documents as JSON's values, as sigs.k8s.io/yaml reads them: a key is a string. Raises YAMLError."""
    try:
        for document in yaml.load_all(data, _V2Loader):
            yield json.loads(json.dumps(document, allow_nan=False))
    # The first two are PyYAML's own, for a text that does not fit its explicit tag.
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise yaml.YAMLError(f"JSON cannot hold it: {error}") from None


def load_as_go(data: str | bytes) -> Any:
    """The first document, as `load_all_as_go` reads it; None if there is none. Raises YAMLError."""
    return next(load_all_as_go(data), None)
