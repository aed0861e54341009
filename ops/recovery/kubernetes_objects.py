"""Reads objects of any kind from the management cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

from kubernetes import config, dynamic
from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError
from urllib3.exceptions import HTTPError

from identity.access.kubeconfig import Kubeconfig
from ops.stack.errors import CommandError


class KubernetesObjects:
    """The API behind a kubeconfig's context; safe for many threads."""

    def __init__(self, client: dynamic.DynamicClient) -> None:
        self._client = client
        # The client discovers what the server serves as it goes; a second thread would see half of it.
        self._discovery = Lock()

    def has(self, api_version: str, kind: str, namespace: str | None, name: str) -> bool:
        """Whether there is such an object; `namespace` is None for a cluster-scoped kind.

        Raises CommandError if the API answers neither yes nor no.
        """
        try:
            with self._discovery:
                collection = self._client.resources.get(api_version=api_version, kind=kind)
            collection.get(name=name, namespace=namespace)
        except (NotFoundError, ResourceNotFoundError):
            return False
        except (ApiException, HTTPError) as error:
            raise CommandError(f"reading {kind} {name} from the management cluster: {error}") from None
        return True


@contextmanager
def connected(kubeconfig: Path | Kubeconfig, context: str | None = None) -> Iterator[KubernetesObjects]:
    """The cluster of this context, or of the current one; raises CommandError if it cannot be reached."""
    try:
        with (
            _client(kubeconfig, context) as api,
            TemporaryDirectory() as directory,
        ):
            # The default for its discovery cache is the system's temporary directory, which anybody can write.
            yield KubernetesObjects(dynamic.DynamicClient(api, cache_file=str(Path(directory, "discovery.json"))))
    except (ConfigException, ApiException, HTTPError) as error:
        where = f" of {kubeconfig}" if isinstance(kubeconfig, Path) else ""
        raise CommandError(f"the management cluster{where} cannot be read: {error}") from None


def _client(kubeconfig: Path | Kubeconfig, context: str | None) -> ApiClient:
    client: ApiClient = (
        config.new_client_from_config(str(kubeconfig), context)
        if isinstance(kubeconfig, Path)
        else config.new_client_from_config_dict(json.loads(kubeconfig.to_json()), context)
    )
    return client
