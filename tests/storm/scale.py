"""Scales the storm's pod: `python -m tests.storm.scale <kubeconfig> <replicas>` ends once so many are ready.

A process of its own, so that a loss of power takes it along with all others of the machine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

import httpx

from localcloud.testing.kubernetes import client_of

NAMESPACE: Final = "clusters-hc1"
POD: Final = "consumer"
_PATH: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
_WITHIN: Final = 30  # seconds


def main(kubeconfig: Path, replicas: int) -> None:
    """Scale; ends with code 1 and the last status if the pods are not ready in time."""
    try:
        _scale(kubeconfig, replicas)
    except httpx.HTTPError as error:
        sys.exit(f"the API server does not answer: {error}")


def _scale(kubeconfig: Path, replicas: int) -> None:
    with client_of(kubeconfig) as http:
        found = http.patch(
            f"{_PATH}/{POD}",
            json={"spec": {"replicas": replicas}},
            headers={"Content-Type": "application/merge-patch+json"},
        ).raise_for_status()
        version, status = found.json()["metadata"]["resourceVersion"], found.json()["status"]
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(_WITHIN)}
        if _is_done(status, replicas):
            return
        with http.stream("GET", _PATH, params=query) as changes:
            for line in changes.iter_lines():
                status = json.loads(line)["object"].get("status", {})
                if _is_done(status, replicas):
                    return
    sys.exit(f"not {replicas} pods are ready, does the kubelet run? {status}")


def _is_done(status: dict[str, int], replicas: int) -> bool:
    return status.get("readyReplicas", 0) == status.get("replicas", 0) == replicas


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
