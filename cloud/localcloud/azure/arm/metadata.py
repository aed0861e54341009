"""`GET /metadata/endpoints`: the addresses of a cloud's services, which needs no token.

Source: the answer of management.azure.com with api-version 2022-09-01, of which this has the emulated services, and the
list of 2019-05-01, which the Azure CLI reads (azure-cli-core `cloud.py`).
"""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from localcloud.azure.arm import errors
from localcloud.azure.shared.asked_cloud import cloud_of
from localcloud.core.clouds import CLOUDS, DEFAULT_CLOUD, Cloud

PATH: Final = "/metadata/endpoints"
# Versions from here on answer one object, earlier ones a list of every cloud.
_ONE_CLOUD: Final = "2022-09-01"
# The names that ARM gives the clouds.
_NAMES: Final = {DEFAULT_CLOUD: "AzureCloud", "AzureUSGovernmentCloud": "AzureUSGovernment"}


async def endpoints(request: Request) -> Response:
    """The endpoints of the cloud that was asked."""
    version = request.query_params.get("api-version", "")
    errors.check_api_version(version)
    if version >= _ONE_CLOUD:
        return JSONResponse(_described(cloud_of(request.scope)))
    return JSONResponse([_described(cloud) for cloud in CLOUDS.values()])


def _described(cloud: Cloud) -> dict[str, Any]:
    audience = cloud.arm_scope.removesuffix("/.default")
    return {
        "name": _NAMES.get(cloud.name, cloud.name),
        "authentication": {
            "loginEndpoint": cloud.authority_host.rstrip("/"),
            "audiences": [audience, f"{cloud.arm_endpoint}/"],
            "tenant": "common",
            "identityProvider": "AAD",
        },
        "resourceManager": f"{cloud.arm_endpoint}/",
        "microsoftGraphResourceId": f"{cloud.graph_endpoint}/",
        "graph": f"{cloud.graph_endpoint}/",
        "graphAudience": f"{cloud.graph_endpoint}/",
        "suffixes": {
            "keyVaultDns": cloud.vault_suffix,
            "mhsmDns": cloud.managed_hsm_suffix,
            "storage": cloud.storage_suffix,
        },
    }
