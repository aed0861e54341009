"""The discovery documents: versions, groups, resources and the OpenAPI documents."""

from __future__ import annotations

from typing import Any, Final

from localcloud.kubernetes import patches, schemas
from localcloud.kubernetes.kinds import KINDS, ResourceKind

_VERBS: Final = ["create", "delete", "get", "list", "patch", "update", "watch"]
_STATUS_VERBS: Final = ["get", "patch", "update"]

VERSION: Final = {
    "major": "1",
    "minor": "35",
    "gitVersion": "v1.35.4+localcloud",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}


def core_versions() -> dict[str, Any]:
    """`/api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups() -> dict[str, Any]:
    """`/apis`."""
    names = sorted({kind.group for kind in KINDS if kind.group})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in names]}


def group(name: str) -> dict[str, Any] | None:
    """`/apis/<group>`, None for a group that is not served."""
    if any(kind.group == name for kind in KINDS):
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(name)}
    return None


def resources(group: str, version: str) -> dict[str, Any] | None:
    """`/api/v1` or `/apis/<group>/<version>`, None for a version that is not served."""
    served = [kind for kind in KINDS if (kind.group, kind.version) == (group, version)]
    if not served:
        return None
    listed: list[dict[str, Any]] = []
    for kind in served:
        extras = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
        listed.append({**_resource(kind, kind.plural, _VERBS), **extras})
        if kind.has_status:
            listed.append(_resource(kind, f"{kind.plural}/status", _STATUS_VERBS))
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": served[0].api_version,
        "resources": listed,
    }


def openapi_paths() -> dict[str, Any]:
    """`/openapi/v3`: where each group's document is."""
    return {
        "paths": {
            path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in sorted({_root(kind) for kind in KINDS})
        }
    }


def openapi(path: str) -> dict[str, Any] | None:
    """The OpenAPI document of one group version; kubectl learns from it that the server validates fields."""
    served = [kind for kind in KINDS if _root(kind) == path]
    if not served:
        return None
    document: dict[str, Any] = {}
    for kind in served:
        gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        document[kind.kind] = {**schemas.components()[kind.kind], "x-kubernetes-group-version-kind": [gvk]}
    used = {name: schema for name, schema in schemas.components().items() if name not in {kind.kind for kind in KINDS}}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": {path: operations for kind in served for path, operations in _paths(kind).items()},
        "components": {"schemas": {**used, **document}},
    }


def _paths(kind: ResourceKind) -> dict[str, Any]:
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    scope = "namespaces/{namespace}/" if kind.namespaced else ""
    query = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in ("dryRun", "fieldValidation")]
    content = {media: {"schema": {"type": "object"}} for media in (patches.MERGE, patches.JSON, patches.APPLY)}
    patch = {
        "parameters": query,
        "requestBody": {"content": content},
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": gvk,
    }
    return {f"/{_root(kind)}/{scope}{kind.plural}/{{name}}": {"patch": patch}}


def _root(kind: ResourceKind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def _group(name: str) -> dict[str, Any]:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version in sorted({kind.version for kind in KINDS if kind.group == name})
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource(kind: ResourceKind, name: str, verbs: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "singularName": kind.singular if "/" not in name else "",
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs,
    }
