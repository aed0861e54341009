"""The forms of single values of a hosted cluster; see `kinds.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.unit.identity.settings.kinds import CLUSTER, PLACEHOLDER, Kind
from tests.unit.identity.settings.world import KEY_VERSION

INTERNET: Final = "Entra ID has to read the issuer's keys there, over the internet"
CLUSTER_KINDS: Final[Mapping[str, Kind]] = {
    "managed resource group": Kind(
        paths=(f"{CLUSTER}resourceGroup",),
        accepted='the name of a resource group: 2-90 letters, digits, "_", "-", "(", ")" and ".", not ending with "."',
        blank="<resource-group>",
        bad=dict.fromkeys(("x", "rg.", "a/b", "x" * 91), "<resource-group>"),
        good=("rg", "x" * 90),
    ),
    "cluster": Kind(
        paths=(f"{CLUSTER}name",),
        accepted='the name of a hosted cluster: 1-54 lower-case letters, digits, "-" and ".", as a Kubernetes object',
        blank="<cluster>",
        bad={"HC1": "hc1", "a_b": "a-b", "-hc": "<cluster>", "a..b": "a-b", "x" * 55: "<cluster>", 1: "<cluster>"},
        good=("a", "x" * 54, "a.b-c"),
        also={f"{CLUSTER}infraID": "infra", f"{CLUSTER}namespace": "n"},
    ),
    "namespace": Kind(
        paths=(f"{CLUSTER}namespace",),
        accepted='a Kubernetes namespace: 1-63 lower-case letters, digits and "-", which is not at an end',
        blank="<namespace>",
        bad={"My": "my", "a.b": "a-b", "a-": "<namespace>", "x" * 64: "<namespace>"},
        good=("n",),
    ),
    "infraID": Kind(
        paths=(f"{CLUSTER}infraID",),
        accepted='an infrastructure id: 1-253 lower-case letters, digits and "-", which is not at an end',
        blank="<infra-id>",
        bad={"Infra": "infra", "a.b": "a-b", "-a": "<infra-id>", "x" * 254: "<infra-id>"},
        good=("x" * 253,),
    ),
    "issuer": Kind(
        paths=(f"{CLUSTER}issuerURL",),
        accepted="the public https URL of the cluster's OIDC issuer, exactly as in its tokens, at most 255 characters",
        blank="<url>",
        bad={
            "https://kubernetes.default.svc": ("<url>", INTERNET),
            "https://127.0.0.1/oidc": ("<url>", INTERNET),
            "https://[::1]/oidc": ("<url>", INTERNET),
            "https://issuer": ("<url>", INTERNET),
            "http://oidc.example.com": "<url>",
            "https://oidc.example.com/?a=b": "<url>",
            "https://me@oidc.example.com": "<url>",
            "https://oidc.example.com/" + "a" * 231: "<url>",
        },
        good=("https://oidc.example.com/" + "a" * 230, "https://oidc.example.com/"),
    ),
    "encoding": Kind(
        paths=(f"{CLUSTER}objectEncoding",),
        accepted="utf-8, base64 or hex",
        blank="<utf-8|base64|hex>",
        bad={"utf8": "utf-8", "UTF-8": "utf-8", "Base64": "base64", "ascii": "<utf-8|base64|hex>"},
        good=("utf-8", "base64", "hex"),
    ),
    "key": Kind(
        paths=(f"{CLUSTER}kms__activeKey__keyName",),
        accepted="the name of a Key Vault key: 1-127 letters, digits and hyphens",
        blank="<key>",
        bad={"a_b": "a-b", "x" * 128: "<key>"},
        good=("k", "x" * 127),
        also={f"{CLUSTER}kms__activeKey": {"keyVaultName": "kv-etcd", "keyVersion": KEY_VERSION}},
    ),
    "version": Kind(
        paths=(f"{CLUSTER}kms__activeKey__keyVersion",),
        accepted="the version of a Key Vault key, 32 hexadecimal digits",
        blank="<version>",
        hint="`az keyvault key show --vault-name <vault> --name <key> --query key.kid` ends with it",
        bad={"latest": "<version>", "0" * 32: ("<version>", PLACEHOLDER)},
        good=(KEY_VERSION.upper(),),
        also={f"{CLUSTER}kms__activeKey": {"keyVaultName": "kv-etcd", "keyName": "etcd"}},
    ),
    "secret": Kind(
        paths=(f"{CLUSTER}identities__ingress__secretName",),
        accepted="the name of a Key Vault secret: 1-127 letters, digits and hyphens",
        blank="<secret>",
        bad={"a.b": "a-b", "a_b": "a-b", "x" * 128: "<secret>"},
        good=("s", "x" * 127),
    ),
    "source": Kind(
        paths=(f"{CLUSTER}identities__ingress__source",),
        accepted="entra-application or managed-identity",
        blank="<entra-application|managed-identity>",
        bad={"managedIdentity": "managed-identity", "vault": "<entra-application|managed-identity>"},
        good=("entra-application",),
    ),
    "permission": Kind(
        paths=("allowCredentialLoss",),
        accepted='the name of a hosted cluster: 1-54 lower-case letters, digits, "-" and ".", as a Kubernetes object',
        blank="<cluster>",
        bad={"HC1": "hc1", "*": "<cluster>"},
        good=("hc1", "gone"),
        in_list=True,
    ),
}
