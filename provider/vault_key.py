"""`VaultKeyResource`: a key of a hosted cluster. The vault has it, and the state what is no secret of it.

The key is made, or read from a file, in one call and forgotten at its end. What the vault has is the truth: a run that
was cut short after the write finds it there, and a version that somebody else wrote is taken over.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypedDict

from identity.access.records import SecretMetadata
from identity.credentials.secret_tags import OWNER
from identity.credentials.service_account_key import UnusableKeyError
from identity.plugin_schema import CheckedVaultKey
from plugin import PluginError, Props, ReadResult, log_info, unwrap
from provider.inputs import Inputs
from provider.ownership import OWNER_ID, refuse_foreign
from provider.resource import TypedResource, explained, marked
from provider.vault_secrets import VaultSecret, inputs_of_import


class _KeyFile(TypedDict):
    file: str
    fileKeyId: str


class VaultKeyResource(TypedResource[CheckedVaultKey, Mapping[str, Any]]):
    """Another name or vault is another key; everything else changes in place.

    `enabled` is an input after Check, which a person may change in the vault. A secret with `source: vault` is only
    read: it is neither changed nor deleted.
    """

    # Where the file lies says nothing about its key, which `fileKeyId` names.
    uncompared = frozenset({"file"})
    replacing = frozenset({"vaultId", "secretName"})
    noun: ClassVar[str]
    content_type: ClassVar[str]
    # Of the secret in the vault; its value is the key's id.
    tag: ClassVar[str]
    accepted: ClassVar[str]

    @abstractmethod
    def made(self) -> str:
        """A new key as the vault has it."""

    @abstractmethod
    def described(self, key: str) -> Props:
        """What is no secret of a key, its `keyId` among it; raises UnusableKeyError."""

    def normalized(self, key: str) -> str:
        """The form in which the vault has a key of a file; raises UnusableKeyError."""
        return key

    def optional(self, old: Props | None, new: Props) -> frozenset[str]:
        """An import has the engine check what was read."""
        return frozenset({"tags"})

    def require(self, inputs: CheckedVaultKey, report: Inputs) -> None:
        """A file has a path, and a key."""
        if inputs.get("source") == "file":
            report.require(_KeyFile)

    def decide(self, urn: str, old: Mapping[str, Any] | None, inputs: CheckedVaultKey) -> Props:
        """A secret that somebody disabled is enabled again."""
        return {"source": inputs.get("source", "made"), "enabled": True}

    def make(self, urn: str, inputs: CheckedVaultKey) -> tuple[str, Mapping[str, Any]]:
        """Make the key and write it; one that an earlier run of this stack has written is taken over."""
        secret = VaultSecret.of(inputs)
        with explained(f"the {self.noun} was not written"):
            found = secret.metadata()
            if inputs["source"] != "vault":
                refuse_foreign(urn, found, inputs)
            if inputs["source"] == "vault" or (found is not None and self.tag in found.tags):
                return secret.id, self._as_in_vault(secret, inputs)
            if found is not None:
                raise PluginError(f"cannot create already existing resource '{found.id}'")
            return secret.id, self._written(secret, inputs)

    def read(self, urn: str, id: str, inputs: Props, state: Props) -> ReadResult | None:
        """What ARM shows of it; an import reads `<cloud>/<tenant id><ARM id>`, and the key's public half."""
        inputs = inputs or inputs_of_import(id)
        with explained(f"the {self.noun} cannot be read"):
            secret = VaultSecret.of(unwrap(inputs))
            found = secret.metadata()
            if found is None:
                return None
            if not state:
                live = marked({"source": "made"} | inputs | self._seen(found))
                return ReadResult(found.id, live, {**live, **self._public(secret), "version": found.version})
        live = inputs | self._seen(found) if inputs["source"] != "vault" else dict(inputs)
        if OWNER not in found.tags:
            live.pop(OWNER_ID, None)
        if found.version != state["version"]:
            live["rewritten"] = True
        return ReadResult(found.id, live, state | live)

    def keeps_outputs(self, old: CheckedVaultKey, new: CheckedVaultKey) -> bool:
        """Another key comes out of another file, or after somebody wrote one into the vault."""
        return old.get("fileKeyId") == new.get("fileKeyId") and not old.get("rewritten")

    def amend(
        self, urn: str, old: CheckedVaultKey, outputs: Mapping[str, Any], new: CheckedVaultKey
    ) -> Mapping[str, Any]:
        """Another key out of another file; the key in the vault after somebody wrote one; else only the metadata."""
        secret = VaultSecret.of(new)
        with explained(f"the {self.noun} was not written"):
            found = secret.metadata()
            if new["source"] != "vault":
                refuse_foreign(urn, found, new, old)
            if old.get("fileKeyId") != new.get("fileKeyId") and new["source"] == "file":
                return self._written(secret, new)
            if new["source"] != "vault" and found is not None and found.version == outputs["version"]:
                # The value is not read: that takes a right which a deployer may lack for everything else.
                secret.amend(self._properties(), self._tags(new, outputs["keyId"]))
                return outputs
            return self._as_in_vault(secret, new)

    def remove(self, urn: str, id: str, inputs: CheckedVaultKey, outputs: Mapping[str, Any]) -> None:
        """Delete the secret softly, unless somebody else made it."""
        if inputs["source"] == "vault":
            return
        with explained(f"the {self.noun} was not deleted"):
            VaultSecret.of(inputs).delete()

    def _written(self, secret: VaultSecret, inputs: CheckedVaultKey) -> Props:
        """The outputs after a new version with the key, which nobody has once this returns."""
        key = self._of_file(inputs) if inputs["source"] == "file" else self.made()
        known = self.described(key)
        written = secret.write(self._properties() | {"value": key}, self._tags(inputs, known["keyId"]))
        log_info(f"the vault has the {self.noun} {known['keyId']} in the secret {secret.name}")
        return known | {"version": written.version}

    def _as_in_vault(self, secret: VaultSecret, inputs: CheckedVaultKey) -> Props:
        """The outputs of the key that the vault has; what the stack made gets its metadata back."""
        known = self._public(secret)
        if inputs["source"] == "vault":
            found = secret.metadata()
        else:
            found = secret.amend(self._properties(), self._tags(inputs, known["keyId"]))
        return known | {"version": "" if found is None else found.version}

    def _public(self, secret: VaultSecret) -> Props:
        try:
            return self.described(secret.value())
        except UnusableKeyError as error:
            raise PluginError(
                f"{secret.id} holds {error}; accepted: {self.accepted}. Store the key as a new version"
            ) from None

    def _of_file(self, inputs: CheckedVaultKey) -> str:
        path = Path(inputs["file"] or "")
        try:
            key = self.normalized(path.read_text(encoding="utf-8"))
            key_id = self.described(key)["keyId"]
        except (OSError, UnicodeDecodeError) as error:
            raise PluginError(f"{path} cannot be read ({type(error).__name__}); put the key there again") from None
        except UnusableKeyError as error:
            raise PluginError(f"{path} holds {error}; put the key there again") from None
        if key_id != inputs["fileKeyId"]:
            raise PluginError(f"{path} changed while the stack was deployed; run the command again")
        return key

    def _properties(self) -> Props:
        return {"contentType": self.content_type, "attributes": {"enabled": True}}

    def _tags(self, inputs: CheckedVaultKey, key_id: str) -> dict[str, str]:
        owner_id = inputs.get("ownerId")
        return {**inputs.get("tags", {}), self.tag: key_id, **({OWNER: owner_id} if owner_id else {})}

    def _seen(self, found: SecretMetadata) -> Props:
        tags = {name: value for name, value in found.tags.items() if name not in (self.tag, OWNER)}
        return {"tags": tags, "enabled": found.enabled}
