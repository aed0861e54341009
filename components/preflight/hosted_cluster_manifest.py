"""Reads the user's part of a HostedCluster and validates it against the stack's part, before the first resource.

A HostedCluster of a release that the configuration names gets the defaults of `hosted_cluster_object.py` as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from components.hypershift.hosted_cluster_object import (
    Conflict,
    completed,
    conflicts,
    defaults,
    hosted_cluster_spec,
    stack_part,
)
from components.preflight.problems import problem
from identity.settings import HostedClusterSettings, Problem, Settings
from identity.settings.schema.arm_ids import canonical
from identity.settings.schema.problems import Place, enumerate_words, path_of, show, value_at
from identity.settings.stack_file import require_unique_keys
from identity.yaml_text import load_all_as_go

_KEYS: Final = ("apiVersion", "kind", "metadata", "spec")
# `hypershift create cluster azure --render` prints an empty one.
_STATUS: Final = "status"
# Placeholder of the client ids: Azure assigns them, so no manifest can agree with them.
_ASSIGNED_BY_AZURE: Final = object()


@dataclass(frozen=True)
class Manifests:
    """The user's parts by hosted cluster, and the problems. Usable only without problems."""

    documents: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read_manifests(settings: Settings, vault_name: str) -> Manifests:
    """Read the key `hostedCluster` of each hosted cluster: a manifest in place, the name of a file, or neither."""
    manifests = Manifests()
    for index, cluster in enumerate(settings.hosted_clusters):
        written = cluster.hosted_cluster
        if written is None:
            continue
        place: Place = ("hostedClusters", index, "hostedCluster", "manifest" if written.file is None else "file")
        try:
            document = _cleaned((written.manifest or {}) if written.file is None else _read(Path(written.file)))
        except (OSError, ValueError) as error:
            manifests.problems.append(_unusable(place, written.file, error))
            continue
        whole = document if written.release_image is None else completed(document, defaults(cluster))
        manifests.documents[cluster.name] = whole
        is_inline = written.file is None
        manifests.problems.extend(_validate(document, settings, cluster, vault_name, place, is_inline=is_inline))
        if written.manifest is not None or written.file is not None:
            manifests.problems.extend(_without_signing_key(document, cluster, place))
        manifests.problems.extend(_capabilities(whole, cluster, place, is_inline=is_inline))
    return manifests


def _read(path: Path) -> dict[str, Any]:
    """The only document of the file. Raises OSError, and ValueError (also UnicodeDecodeError) with the reason."""
    try:
        text = path.read_text(encoding="utf-8")
        documents = [document for document in load_all_as_go(text) if document is not None]
        require_unique_keys(text)  # as `kubectl apply` does
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    if len(documents) != 1:
        raise ValueError(f"it has {len(documents)} YAML documents")
    if not isinstance(documents[0], dict):
        raise ValueError("it is not a mapping")
    return documents[0]


def _unusable(place: Place, file: str | None, error: Exception) -> Problem:
    reason = error.__class__.__name__ if isinstance(error, (OSError, UnicodeDecodeError)) else str(error)
    return problem("hosted-cluster-file-unusable", place, file=file, why=reason)


def _cleaned(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in _normalized(document).items() if key != _STATUS}


def _validate(
    document: Mapping[str, Any],
    settings: Settings,
    cluster: HostedClusterSettings,
    vault_name: str,
    place: Place,
    *,
    is_inline: bool,
) -> Iterator[Problem]:
    for key in document:
        if key not in _KEYS:
            yield problem(
                "hosted-cluster-unknown-key",
                (*place, key) if is_inline else place,
                key=key,
                known=enumerate_words(_KEYS),
            )
    spec = hosted_cluster_spec(
        settings,
        cluster,
        vault_name=vault_name,
        control_plane={row.field: _ASSIGNED_BY_AZURE for row in cluster.enabled_rows},
        data_plane={row.field: _ASSIGNED_BY_AZURE for row in cluster.federated_rows},
    )
    for conflict in conflicts(document, stack_part(cluster, spec)):
        yield _conflict_problem(conflict, (*place, *conflict.path) if is_inline else place)


def _without_signing_key(
    document: Mapping[str, Any], cluster: HostedClusterSettings, place: Place
) -> Iterator[Problem]:
    named = value_at(document, ("spec", "serviceAccountSigningKey", "name"))
    if named is None and cluster.signing_key_reference is None:
        yield problem(
            "hosted-cluster-without-signing-key", place, at=path_of((*place[:-1], "serviceAccountSigningKey"))
        )


def _capabilities(
    whole: Mapping[str, Any], cluster: HostedClusterSettings, place: Place, *, is_inline: bool
) -> Iterator[Problem]:
    """An enabled capability starts an operator, which waits for ever for a disabled identity."""
    steps = ("spec", "capabilities", "disabled")
    disabled = value_at(whole, steps)
    for capability in cluster.disabled_capabilities:
        if not isinstance(disabled, list) or capability not in disabled:
            yield problem(
                "hosted-cluster-capability",
                (*place, *steps) if is_inline else place,
                at=path_of(steps),
                capability=capability,
            )


def _conflict_problem(conflict: Conflict, place: Place) -> Problem:
    is_assigned = conflict.stack_value is _ASSIGNED_BY_AZURE
    written = "a client id that Azure assigns" if is_assigned else show(conflict.stack_value)
    return Problem(
        place=place,
        rule="hosted-cluster-conflict",
        found=f"{show(conflict.user_value)} at {path_of(conflict.path)}, where the stack writes {written}",
        accepted="nothing there" if is_assigned else f"nothing there, or {written}",
        fix="remove it" if is_assigned else "remove it, or correct the setting that the stack's value comes from",
    )


def _normalized(value: Any) -> Any:
    """A copy with Azure's spelling of resource ids, without nulls: to Kubernetes, null is the same as absent."""
    if isinstance(value, Mapping):
        return {key: _normalized(item) for key, item in value.items() if item is not None}
    if isinstance(value, str):
        return canonical(value)
    return [_normalized(item) for item in value] if isinstance(value, list) else value
