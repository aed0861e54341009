"""The keys of a hosted cluster in the vault, which has the key. The state has only what is not secret.

The key is made, or read from a file, in one call and forgotten at its end. The vault is the source of truth: after an
interrupted run the next one finds the key there, and a version that somebody else wrote is taken over.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, TypedDict

from identity.azure.records import SecretMetadata
from identity.credentials import service_account_key
from identity.credentials.secret_tags import ENCRYPTION_KEY_ID, OWNER, SIGNING_KEY_ID
from identity.credentials.service_account_key import ETCD_KEY_BYTES, UnusableKeyError, etcd_key_id, make_etcd_key
from identity.plugin_schema import (
    CheckedVaultKey,
    EncryptionKeyInputs,
    SigningKeyInputs,
    SigningKeyOutputs,
    VaultKeyOutputs,
)
from plugin import PluginError, Props, ReadResult, log_info, unwrap
from provider.resource import Inputs, TypedResource, marked, plugin_errors
from provider.vault_secrets import OWNER_ID, TAKEN_OVER, VaultSecret, inputs_of_import, refuse_foreign


@dataclass(frozen=True, kw_only=True)
class KeyForm:
    """One kind of key, a text in the vault. Functions that get such a text raise UnusableKeyError.

    Attributes:
        content_type: of the secret in the vault.
        tag: the secret's tag with the key's id.
        accepted: what the vault may hold, in a message.
        other_key: the key that the vault's is compared with, in a message.
        make: a new key.
        described: the outputs that a key determines, `keyId` among them.
        normalized: a key from elsewhere in the one form that HyperShift reads.
        to_kubernetes: the bytes of the Kubernetes Secret.
        from_kubernetes: the vault's text for such bytes; raises UnicodeDecodeError.
    """

    noun: str
    content_type: str
    tag: str
    accepted: str
    other_key: str
    make: Callable[[], str]
    described: Callable[[str], Props]
    normalized: Callable[[str], str]
    to_kubernetes: Callable[[str], bytes]
    from_kubernetes: Callable[[bytes], str]


def _public_half(pem: str) -> Props:
    public = service_account_key.public_half(pem)
    return {"keyId": public.key_id, "jwk": dict(public.jwk), "publicKeyPem": public.pem}


SIGNING_KEY: Final = KeyForm(
    noun="signing key",
    content_type="application/x-pem-file",
    tag=SIGNING_KEY_ID,
    accepted="an RSA private key in PEM",
    other_key="the issuer publishes",
    make=service_account_key.make,
    described=_public_half,
    normalized=service_account_key.normalize,
    to_kubernetes=str.encode,
    from_kubernetes=bytes.decode,
)
ENCRYPTION_KEY: Final = KeyForm(
    noun="encryption key",
    content_type="application/octet-stream",
    tag=ENCRYPTION_KEY_ID,
    accepted=f"{ETCD_KEY_BYTES} bytes in base64",
    other_key="the one that encrypts etcd",
    make=make_etcd_key,
    described=lambda key: {"keyId": etcd_key_id(key)},
    normalized=str,
    to_kubernetes=base64.b64decode,
    from_kubernetes=lambda held: base64.b64encode(held).decode(),
)


class _KeyFile(TypedDict):
    file: str
    fileKeyId: str


class VaultKeyResource(TypedResource[CheckedVaultKey, Mapping[str, Any]]):
    """Another name or vault is another key; everything else changes in place.

    Check adds the input `enabled`, because a person may disable the secret in the vault. A secret with `source: vault`
    is neither changed nor deleted.
    """

    # Where the file lies says nothing about its key, which `fileKeyId` names.
    uncompared = frozenset({"file"})
    replacing = frozenset({"vaultId", "secretName"})
    form: ClassVar[KeyForm]

    def optional(self, old: Props | None, new: Props) -> frozenset[str]:
        """After an import the engine checks what was read."""
        return frozenset({"tags"})

    def require(self, inputs: CheckedVaultKey, report: Inputs) -> None:
        """A file has a path, and a key."""
        if inputs.get("source") == "file":
            report.require(_KeyFile)

    def decide(self, urn: str, old: Mapping[str, Any] | None, inputs: CheckedVaultKey) -> Props:
        """A disabled secret is enabled again."""
        return {"source": inputs.get("source", "made"), "enabled": True}

    def make(self, urn: str, inputs: CheckedVaultKey) -> tuple[str, Mapping[str, Any]]:
        """Make the key and write it, or take over the one that an earlier run of this stack wrote."""
        secret = VaultSecret.of(inputs)
        with plugin_errors(f"the {self.form.noun} was not written"):
            current = secret.metadata()
            if inputs["source"] != "vault":
                refuse_foreign(urn, current, inputs)
            if inputs["source"] == "vault" or (current is not None and self.form.tag in current.tags):
                if current is not None:
                    TAKEN_OVER.add(current.version)
                return secret.id, self._as_in_vault(secret, inputs)
            if current is not None:
                raise PluginError(f"cannot create already existing resource '{current.id}'")
            return secret.id, self._written(secret, inputs)

    def read(self, urn: str, id: str, inputs: Props, state: Props) -> ReadResult | None:
        """What ARM shows of it; an import reads `<cloud>/<tenant id><ARM id>`, and the key's public half."""
        inputs = inputs or inputs_of_import(id)
        with plugin_errors(f"the {self.form.noun} cannot be read"):
            secret = VaultSecret.of(unwrap(inputs))
            current = secret.metadata()
            if current is None:
                return None
            if not state:
                live = marked({"source": "made"} | inputs | self._seen(current))
                return ReadResult(current.id, live, {**live, **self._public(secret), "version": current.version})
        live = inputs | self._seen(current) if inputs["source"] != "vault" else dict(inputs)
        if OWNER not in current.tags:
            live.pop(OWNER_ID, None)
        if current.version != state["version"]:
            live["rewritten"] = True
        return ReadResult(current.id, live, state | live)

    def keeps_outputs(self, old: CheckedVaultKey, new: CheckedVaultKey) -> bool:
        """Another file, or a version that somebody else wrote into the vault, means another key."""
        return old.get("fileKeyId") == new.get("fileKeyId") and not old.get("rewritten")

    def amend(
        self, urn: str, old: CheckedVaultKey, outputs: Mapping[str, Any], new: CheckedVaultKey
    ) -> Mapping[str, Any]:
        """Write the key of another file, take over a version that somebody else wrote, or change only the metadata."""
        secret = VaultSecret.of(new)
        with plugin_errors(f"the {self.form.noun} was not written"):
            current = secret.metadata()
            if new["source"] != "vault":
                refuse_foreign(urn, current, new, old)
            if old.get("fileKeyId") != new.get("fileKeyId") and new["source"] == "file":
                return self._written(secret, new)
            if new["source"] != "vault" and current is not None and current.version == outputs["version"]:
                # The value is not read: that would need a right which nothing else here needs.
                secret.amend(self._properties(), self._tags(new, outputs["keyId"]))
                return outputs
            return self._as_in_vault(secret, new)

    def remove(self, urn: str, id: str, inputs: CheckedVaultKey, outputs: Mapping[str, Any]) -> None:
        """Soft-delete the secret, unless somebody else made it."""
        if inputs["source"] == "vault":
            return
        with plugin_errors(f"the {self.form.noun} was not deleted"):
            VaultSecret.of(inputs).delete(outputs.get("version"))

    def _written(self, secret: VaultSecret, inputs: CheckedVaultKey) -> Props:
        """The outputs after writing a new version with the key."""
        key = self._of_file(inputs) if inputs["source"] == "file" else self.form.make()
        known = self.form.described(key)
        written = secret.write(self._properties() | {"value": key}, self._tags(inputs, known["keyId"]))
        log_info(f"the vault has the {self.form.noun} {known['keyId']} in the secret {secret.name}")
        return known | {"version": written.version}

    def _as_in_vault(self, secret: VaultSecret, inputs: CheckedVaultKey) -> Props:
        """The outputs of the key that the vault has; what the stack made gets its metadata back."""
        known = self._public(secret)
        if inputs["source"] == "vault":
            current = secret.metadata()
        else:
            current = secret.amend(self._properties(), self._tags(inputs, known["keyId"]))
        return known | {"version": "" if current is None else current.version}

    def _public(self, secret: VaultSecret) -> Props:
        try:
            return self.form.described(secret.value())
        except UnusableKeyError as error:
            raise PluginError(
                f"{secret.id} holds {error}; accepted: {self.form.accepted}. Store the key as a new version"
            ) from None

    def _of_file(self, inputs: CheckedVaultKey) -> str:
        path = Path(inputs["file"] or "")
        try:
            key = self.form.normalized(path.read_text(encoding="utf-8"))
            key_id = self.form.described(key)["keyId"]
        except (OSError, UnicodeDecodeError) as error:
            raise PluginError(f"{path} cannot be read ({type(error).__name__}); put the key there again") from None
        except UnusableKeyError as error:
            raise PluginError(f"{path} holds {error}; put the key there again") from None
        if key_id != inputs["fileKeyId"]:
            raise PluginError(f"{path} changed while the stack was deployed; run the command again")
        return key

    def _properties(self) -> Props:
        return {"contentType": self.form.content_type, "attributes": {"enabled": True}}

    def _tags(self, inputs: CheckedVaultKey, key_id: str) -> dict[str, str]:
        owner_id = inputs.get("ownerId")
        return {**inputs.get("tags", {}), self.form.tag: key_id, **({OWNER: owner_id} if owner_id else {})}

    def _seen(self, current: SecretMetadata) -> Props:
        tags = {name: value for name, value in current.tags.items() if name not in (self.form.tag, OWNER)}
        return {"tags": tags, "enabled": current.enabled}


class VaultSigningKeyResource(VaultKeyResource):
    """An RSA key that signs service-account tokens; the state has its public half."""

    inputs = SigningKeyInputs
    outputs = SigningKeyOutputs
    form = SIGNING_KEY


class VaultEtcdKeyResource(VaultKeyResource):
    """A key of random bytes with which kube-apiserver encrypts etcd; the state has its id."""

    inputs = EncryptionKeyInputs
    outputs = VaultKeyOutputs
    form = ENCRYPTION_KEY
