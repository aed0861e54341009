"""A valid HostedCluster, and changes of it: those that keep it valid, and one for every rule that makes it invalid.

They are the rows of `hosted_clusters.yaml`. The messages of rules in CEL are this package's, all others are the API
server's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from localcloud.core import documents, yaml_text

ABSENT: Final = object()
"""A value that removes the field."""

# A template: its one digit tells the UUIDs apart.
UUID: Final = "00000000-0000-4000-8000-00000000000{}"
_REQUIRED: Final = "Required value"


_FILE: Final[dict[str, Any]] = yaml_text.load(Path(__file__).with_suffix(".yaml").read_bytes())
_TABLE: Final[dict[str, Any]] = documents.fill(_FILE, _FILE["prefixes"])
_AUTHENTICATION: Final[str] = _TABLE["prefixes"]["authentication"]
NETWORK: Final[str] = _TABLE["prefixes"]["network"]


def hosted_cluster(name: str = "hc1", **changes: Any) -> dict[str, Any]:
    """A managed HostedCluster with every identity; `changes` are values by dotted path, with `__` for a dot."""
    document: dict[str, Any] = deepcopy(_TABLE["document"])
    document["metadata"]["name"], document["spec"]["infraID"] = name, f"{name}-infra"
    for path, value in changes.items():
        document = changed(document, path.replace("__", "."), value)
    return document


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with another value at a dotted path (`ABSENT`: without it); numbers are indexes of a list."""
    copy = deepcopy(document)
    *outer, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    place: Any = copy
    for step in outer:
        place = place[step] if isinstance(step, int) else place.setdefault(step, {})
    if value is ABSENT:
        del place[last]
    else:
        place[last] = deepcopy(value)
    return copy


@dataclass(frozen=True)
class InvalidChange:
    """One change that makes the valid HostedCluster invalid.

    `field` and `message` are those of the error. `is_cel`: only kube-apiserver knows the rule.
    """

    path: str
    value: Any
    message: str
    field: str = ""
    is_cel: bool = False

    @property
    def name(self) -> str:
        """The id of the test case."""
        return f"{self.path.rpartition('.')[2]}: {self.message[:60]}"

    @property
    def refusal(self) -> str:
        """The API server's error."""
        return f"{self.field or self.path}: {self.message}"


def _value(value: Any) -> Any:
    return ABSENT if value is None else value


def _rule(path: str, value: Any, message: str, field: str = "") -> InvalidChange:
    """A rule in CEL."""
    return InvalidChange(path, _value(value), f"Invalid value: {message}", field, is_cel=True)


def _invalid() -> Iterator[InvalidChange]:
    for parent, names in _TABLE["required"].items():
        for name in names.split():
            yield InvalidChange(f"{parent}.{name}", ABSENT, _REQUIRED)
    identity = f"{_TABLE['prefixes']['plane']}.imageRegistry"
    yield InvalidChange(identity, {}, _REQUIRED, f"{identity}.objectEncoding")
    workloads = dict(VALID_CHANGES)[_AUTHENTICATION]
    for name in (f"workloadIdentities.{workload}" for workload in workloads["workloadIdentities"]):
        yield InvalidChange(_AUTHENTICATION, changed(workloads, name, ABSENT), _REQUIRED, f"{_AUTHENTICATION}.{name}")
    for path, limit in _TABLE["longest"].items():
        yield InvalidChange(path, "x" * (limit + 1), f"Too long: may not be more than {limit} bytes")
    for path, text, problem in _TABLE["invalid"]:
        yield InvalidChange(path, text, f'Invalid value: "{text}": {path} in body should {problem}')
    for path, text, supported in _TABLE["unsupported"]:
        named = ", ".join(f'"{value}"' for value in supported)
        yield InvalidChange(path, text, f'Unsupported value: "{text}": supported values: {named}')
    for path, text, message in _TABLE["textRules"]:
        yield _rule(path, text, f'"{text}": {message}')
    yield from (_rule(*row) for row in _TABLE["rules"])


VALID_CHANGES: Final[tuple[tuple[str, Any], ...]] = tuple((path, _value(value)) for path, value in _TABLE["valid"])
"""Changes after which the HostedCluster is still valid."""

INVALID_CHANGES: Final[tuple[InvalidChange, ...]] = tuple(_invalid())
"""Changes after which the HostedCluster is invalid, and the error."""


def _mappings(document: Mapping[str, Any], path: str) -> Iterator[str]:
    """Dotted path of every mapping in a document, its own first."""
    yield path
    for key, value in document.items():
        if isinstance(value, dict):
            yield from _mappings(value, f"{path}.{key}")


UNKNOWN_FIELDS: Final[tuple[str, ...]] = (
    *_TABLE["unknown"],
    *(
        f"{path}.unheardOf"
        for part in ("platform", "secretEncryption")
        for path in _mappings(hosted_cluster()["spec"][part], f"spec.{part}")
    ),
)
"""Fields that strict validation rejects and that are dropped without it: likely mistakes, and one at every level."""

IMMUTABLE_FIELDS: Final[tuple[InvalidChange, ...]] = (
    *(
        _rule(path, text, f'"{text}": {path.rpartition(".")[2]} is immutable')
        for path, text in _TABLE["immutableTexts"].items()
    ),
    *(_rule(*row) for row in _TABLE["immutable"]),
)
"""Changes of an existing HostedCluster, all rejected."""
