"""A request for each refusal in `COVERAGE.md` of what an operation does not understand, by its case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from localcloud.testing.arm import GROUP, ONE, SUBSCRIPTION, VAULT, vault_body
from localcloud.testing.azure import ask
from localcloud.testing.certificates import issue
from tests.coverage.blob_refusals import issuer, request
from tests.coverage.cloud import AUTHORITY, CoverageCloud, Provoke
from tests.coverage.refusals import ASKED, METADATA, application, certificates, federated

_TRUST: Final[Mapping[str, Any]] = {
    **{"name": "main", "issuer": "https://issuer.example", "subject": "s"},
    "audiences": ["api://AzureADTokenExchange"],
}


def _arm_header(cloud: CoverageCloud) -> httpx.Response:
    """A request with a header that changes what Azure does."""
    base, headers = "https://management.azure.com", {"If-Match": "1"}
    token, params = cloud.cloud.tokens.issue(cloud.deployer, base), {"api-version": "2024-11-01"}
    return ask(cloud.arm, base, "GET", VAULT, token=token, params=params, headers=headers)


def _secrets(cloud: CoverageCloud, version: str = "7.4", **headers: str) -> httpx.Response:
    base, params = "https://kv-idstack-local.vault.azure.net", {"api-version": version}
    token = cloud.cloud.tokens.issue(cloud.deployer, "https://vault.azure.net")
    return ask(cloud.keyvault, base, "GET", "/secrets", token=token, params=params, headers=headers)


def _blob_read(cloud: CoverageCloud, **asked: str) -> httpx.Response:
    """A read of a blob of eight bytes with further headers."""
    writer, version = issuer(cloud), {"x-ms-version": "2017-11-09"}
    put = {**version, "x-ms-blob-type": "BlockBlob"}
    request(cloud, "PUT", caller=writer, content=b'{"a": 1}', headers=put).raise_for_status()
    return request(cloud, "GET", caller=writer, headers={**version, **asked})


STRICT_ARM: Final[Mapping[str, Provoke]] = {
    "path of a resource provider alone": lambda cloud: cloud.call("GET", "/providers"),
    "query option that the operation does not know": lambda cloud: cloud.call("GET", VAULT, **{"$expand": "all"}),
    "header that changes the operation": _arm_header,
    "member of the envelope that the type does not have": lambda cloud: cloud.call(
        "PUT", VAULT, {**vault_body(), "identity": {"type": "SystemAssigned"}}
    ),
    "member of another JSON type": lambda cloud: cloud.call("PUT", VAULT, {**vault_body(), "properties": [7]}),
    "filter of role assignments that ARM does not take": lambda cloud: cloud.call(
        "GET",
        f"{GROUP}/providers/Microsoft.Authorization/roleAssignments",
        **{"$filter": f"principalId eq '{ONE}' and atScope()"},
    ),
}


def _entra(cloud: CoverageCloud, **form: str) -> httpx.Response:
    return cloud.token({"grant_type": "client_credentials", "client_id": ONE, "scope": "x/.default", **form})


STRICT_ENTRA: Final[Mapping[str, Provoke]] = {
    "federated token of a subject in another letter case": lambda cloud: federated(cloud, sub="CI"),
    "resource in version 2.0": lambda cloud: _entra(cloud, resource="https://vault.azure.net"),
    "parameter that would be ignored": lambda cloud: _entra(cloud, fmi_path="a/b"),
    "authority that is not a tenant": lambda cloud: cloud.without(
        cloud.entra, AUTHORITY, "GET", "/organizations/v2.0/.well-known/openid-configuration"
    ),
}


def _trusting(cloud: CoverageCloud, *bodies: Mapping[str, Any]) -> httpx.Response:
    """The answer to the last of these federated credentials of one application."""
    path = f"/applications/{application(cloud)['id']}/federatedIdentityCredentials"
    return [cloud.graph("POST", path, {**_TRUST, **body}) for body in bodies][-1]


STRICT_GRAPH: Final[Mapping[str, Provoke]] = {
    "value of another type": lambda cloud: cloud.graph("POST", "/applications", {"displayName": "a", "tags": "one"}),
    "query option that is not emulated": lambda cloud: cloud.graph("GET", "/applications", expand="extensions"),
    "count without the header": lambda cloud: cloud.graph("GET", "/applications/$count"),
    "page of no size": lambda cloud: cloud.graph("GET", "/applications", top="1000"),
    "federated credential twice": lambda cloud: _trusting(cloud, {}, {"name": "other"}),
    "name of a federated credential twice": lambda cloud: _trusting(cloud, {}, {"subject": "other"}),
}


def _imported(
    cloud: CoverageCloud, form: PrivateFormat = PrivateFormat.PKCS8, key: PrivateKeyTypes | None = None
) -> httpx.Response:
    made = issue()
    key = key or load_pem_private_key(made.private_key_pem.encode(), None)
    pem = key.private_bytes(Encoding.PEM, form, NoEncryption()).decode()
    return certificates(cloud, "POST", "/certificates/one/import", {"value": pem + made.certificate_pem})


def _by_hand(cloud: CoverageCloud) -> httpx.Response:
    _imported(cloud).raise_for_status()
    return cloud.vault("PUT", "/secrets/one", {"value": "v"})


def _for_decryption(cloud: CoverageCloud, **asked: Any) -> httpx.Response:
    officer = cloud.principal(("Key Vault Administrator", SUBSCRIPTION))
    body = {"kty": "RSA", "key_ops": ["decrypt", "encrypt"], **asked}
    cloud.vault("POST", "/keys/etcd/create", body, caller=officer).raise_for_status()
    operation = {"alg": "RSA-OAEP", "value": "dGV4dA"}
    path = "/keys/etcd/encrypt" if "attributes" in asked else "/keys/etcd/wrapkey"
    return cloud.vault("POST", path, operation, caller=officer)


STRICT_KEY_VAULT: Final[Mapping[str, Provoke]] = {
    "api-version that is none": lambda cloud: _secrets(cloud, "latest"),
    "header that changes the operation": lambda cloud: _secrets(cloud, **{"If-Match": "1"}),
    "member that is not known": lambda cloud: cloud.vault("PUT", "/secrets/one", {"value": "v", "colour": "red"}),
    "key that is not PKCS#8": lambda cloud: _imported(cloud, PrivateFormat.TraditionalOpenSSL),
    "key of another kind than RSA": lambda cloud: _imported(cloud, key=ec.generate_private_key(ec.SECP256R1())),
    "secret of a certificate written by hand": _by_hand,
    "operation that a key is not made for": _for_decryption,
    "operation with a disabled key": lambda cloud: _for_decryption(cloud, attributes={"enabled": False}),
    "operation before a key begins": lambda cloud: _for_decryption(cloud, attributes={"nbf": 4102444800}),
    "operation after a key has ended": lambda cloud: _for_decryption(cloud, attributes={"exp": 1}),
    "absent issuer": lambda cloud: certificates(cloud, "GET", "/certificates/issuers/one"),
}

STRICT_BLOB: Final[Mapping[str, Provoke]] = {
    "part behind the end of a blob": lambda cloud: _blob_read(cloud, Range="bytes=8-"),
    "range of another form than `bytes=a-` and `bytes=a-b`": lambda cloud: _blob_read(cloud, Range="bytes=-5"),
    "blob as it was": lambda cloud: _blob_read(cloud, **{"If-Match": '"1"'}),
    "content of another hash": lambda cloud: request(
        cloud,
        "PUT",
        caller=issuer(cloud),
        headers={
            "x-ms-version": "2017-11-09",
            "x-ms-blob-type": "BlockBlob",
            "Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA==",
        },
    ),
}

STRICT_IMDS: Final[Mapping[str, Provoke]] = {
    "forwarded request": lambda cloud: cloud.metadata({**METADATA, "X-Forwarded-For": "10.0.0.9"}, **ASKED),
    "query variable that is not emulated": lambda cloud: cloud.metadata(METADATA, **ASKED, claims="x"),
}
