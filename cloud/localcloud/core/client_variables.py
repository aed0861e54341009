"""The variables with which unmodified clients of Azure reach the local cloud by Azure's public names."""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12

from localcloud.core.certificates import KeyMaterial
from localcloud.core.clouds import LocalEnvironment

# Local addresses, which bypass the proxy.
_DIRECT: Final = ("localhost", "127.0.0.1", "::1")


def network(environment: LocalEnvironment) -> dict[str, str]:
    """The proxy, in both letter cases because some clients read only one, and the certificate authority."""
    proxies = {"https_proxy": environment.proxy_endpoint, "http_proxy": environment.proxy_endpoint}
    proxies["no_proxy"] = ",".join(_DIRECT)
    return {
        **proxies,
        **{name.upper(): value for name, value in proxies.items()},
        **dict.fromkeys(("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"), environment.ca_file),
    }


def as_pkcs12(material: KeyMaterial) -> bytes:
    """The form that HashiCorp's providers take, with an empty password."""
    own, *others = material.chain
    return pkcs12.serialize_key_and_certificates(None, material.private_key, own, others, NoEncryption())
