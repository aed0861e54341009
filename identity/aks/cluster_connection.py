"""The connection to a kubeconfig's cluster: address, trust, proxy.

Source: client-go's tools/clientcmd/validation.go, rest/transport.go and transport/transport.go.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx

from identity.aks.cluster_user import content
from identity.azure.errors import AccessError

_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_PROXY_SCHEMES: Final = ("http", "https", "socks5")
_LOOPBACK: Final = ("all://localhost", "all://127.0.0.1", "all://[::1]")


class _NamedContext(ssl.SSLContext):
    """Expects another name in the server's certificate than the address's (tls-server-name)."""

    name: str | None = None

    def wrap_socket(self, *arguments: Any, server_hostname: Any = None, **options: Any) -> Any:
        """For direct connections."""
        options["server_hostname"] = self.name or server_hostname
        return super().wrap_socket(*arguments, **options)

    def wrap_bio(self, *arguments: Any, server_hostname: Any = None, **options: Any) -> Any:
        """For connections through a proxy."""
        options["server_hostname"] = self.name or server_hostname
        return super().wrap_bio(*arguments, **options)


def address(cluster: Mapping[str, Any]) -> str:
    """The server's URL; client-go takes http if it has no scheme."""
    server = str(cluster.get("server") or "")
    return server if "://" in server else f"http://{server}"


def client(cluster: Mapping[str, Any], trust: ssl.SSLContext, timeout: float) -> httpx.Client:
    """Requests to the cluster, through its proxy-url or the environment's proxy; raises AccessError."""
    server = address(cluster)
    proxy = cluster.get("proxy-url") or None
    try:
        # Go never uses the environment's proxy for loopback addresses.
        direct: dict[str, None] = {} if proxy else dict.fromkeys(_LOOPBACK)
        return httpx.Client(base_url=server, verify=trust, timeout=timeout, proxy=proxy, mounts=direct)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise AccessError(f"the API server at {server} cannot be asked through a proxy: {error}") from None


def trust_of(cluster: Mapping[str, Any]) -> ssl.SSLContext:
    """The trusted certificates of the server, as in Go's crypto/tls; raises AccessError."""
    context = _NamedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.name = cluster.get("tls-server-name") or None
    context.hostname_checks_common_name = False
    # Go trusts every certificate in the file, whatever its issuer.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    authority = content(cluster, "certificate-authority")
    if authority is None:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(cadata=b"\n".join(_CERTIFICATE.findall(authority)).decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise AccessError(f"the certificate authority of the kubeconfig cannot be used: {error}") from None
    return context


def unusable_cluster(cluster: Mapping[str, Any]) -> Iterator[str]:
    """What client-go refuses in a cluster (`validateClusterInfo`, `TLSConfigFor`), in words."""
    if not cluster.get("server"):
        yield "it has no server"
    has_authority = [name for name in ("certificate-authority", "certificate-authority-data") if cluster.get(name)]
    if len(has_authority) == 2:
        yield "it has certificate-authority and certificate-authority-data; only one is allowed"
    if has_authority and cluster.get("insecure-skip-tls-verify"):
        yield f"it has {has_authority[0]} and insecure-skip-tls-verify; only one is allowed"
    proxy = cluster.get("proxy-url")
    if proxy and proxy.partition("://")[0] not in _PROXY_SCHEMES:
        yield f"proxy-url has to begin with {'://, '.join(_PROXY_SCHEMES)}://"
