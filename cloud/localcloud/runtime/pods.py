"""Pods that stand for those of others: `localcloud pods` applies the objects of a group, and deletes what it had more.

A group is what one stack asks for. The paths of its objects are recorded for the next call.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import httpx

from localcloud.apiserver.apply import NotAppliedError
from localcloud.core.state_directory import StateDirectory
from localcloud.kubernetes.kubeconfig import connection

_PATHS: Final = {
    "Namespace": "/api/v1/namespaces/{name}",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
}
_OPTIONS: Final = {"fieldManager": "localcloud-pods", "force": "true"}
_WITHIN: Final = 30.0  # seconds


def apply(state: StateDirectory, group: str, documents: Sequence[dict[str, Any]]) -> None:
    """Create or change these Namespaces and Deployments as the deployer, and delete the group's others.

    Raises NotAppliedError if the API refuses, and KeyError for another kind.
    """
    paths = [_PATHS[document["kind"]].format(**document["metadata"]) for document in documents]
    record = state.pods(group)
    before: list[str] = json.loads(record.read_text(encoding="utf-8")) if record.exists() else []
    to = connection(str(state.kubeconfig))
    with httpx.Client(
        base_url=to.server, headers=to.headers, verify=to.verification(), timeout=_WITHIN, trust_env=False
    ) as http:

        def call(method: str, path: str, **request: Any) -> None:
            try:
                answer = http.request(method, path, **request)
            except httpx.TransportError as error:
                raise NotAppliedError(f"{method} {path} at {to.server}: {error}") from None
            if answer.is_error and (method, answer.status_code) != ("DELETE", httpx.codes.NOT_FOUND):
                raise NotAppliedError(f"{method} {path} at {to.server}: {answer.status_code} {answer.text.strip()}")

        # Before the first change: a run that fails half-way leaves nothing that no record has.
        record.parent.mkdir(exist_ok=True)
        record.write_text(json.dumps(sorted({*before, *paths})), encoding="utf-8")
        for path in sorted(set(before) - set(paths), reverse=True):
            call("DELETE", path)
        for path, document in zip(paths, documents, strict=True):
            headers = {"Content-Type": "application/apply-patch+yaml"}
            call("PATCH", path, params=_OPTIONS, json=document, headers=headers)
    record.write_text(json.dumps(paths), encoding="utf-8")
