"""`VaultKeyResource`: a key of a hosted cluster. The vault has it, and the state what is no secret of it.

The key is made, or read from a file, in one call and forgotten at its end. What the vault has is the truth: a run that
was cut short after the write finds it there, and a version that somebody else wrote is taken over.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Final

from identity.azure.errors import AccessError
from identity.azure.records import SecretMetadata
from identity.credentials.secret_tags import OWNER
from identity.credentials.signing_key import UnusableKeyError
from plugin import (
    UNKNOWN,
    Checked,
    Created,
    Diff,
    PluginError,
    PropertyChange,
    Props,
    ReadResult,
    Resource,
    diff_properties,
    log_info,
)
from provider import schema
from provider.inputs import Inputs
from provider.ownership import OWNER_ID, refuse_foreign
from provider.vault_secrets import VaultSecret, inputs_of_import

_PLACE: Final = ("cloud", "tenantId", "vaultId", "secretName")
_MOVED: Final = frozenset({"vaultId", "secretName"})
# Where the file lies says nothing about its key, which `fileKeyId` names.
_UNCOMPARED: Final = frozenset({"file"})
# Only a refresh has it among the inputs, so the next update reads what somebody wrote into the vault.
_REWRITTEN: Final = "rewritten"


class VaultKeyResource(Resource, ABC):
    """Inputs: `cloud`, `tenantId`; `vaultId` (ARM id), `secretName`, `source` (one of `sources`), `tags`; with `file`
    its path from the project's folder, and `fileKeyId`, the id of the key in it; `ownerId` of the stack.

    Outputs also: what `described` has of the key, `version`, none of them secret; `enabled`, which a person may change;
    after a refresh `rewritten`, if somebody wrote another version.

    A secret with `source: vault` is only read: it is neither changed nor deleted.
    """

    noun: ClassVar[str]
    content_type: ClassVar[str]
    # Of the secret in the vault; its value is the key's id.
    tag: ClassVar[str]
    # Who makes the key: this plugin, or somebody else, in a file or in the vault already.
    sources: ClassVar[tuple[str, ...]]
    # Names of what `described` has.
    facts: ClassVar[tuple[str, ...]]
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

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Validate."""
        inputs = Inputs(new)
        for name in _PLACE:
            inputs.string(name)
        if new.get("source", "made") not in self.sources:
            inputs.refuse("source", ", ".join(self.sources))
        if new.get("source") == "file":
            inputs.string("file")
            inputs.string("fileKeyId")
        if old is not None:
            schema.require(old)
        return Checked(schema.marked({"source": "made"} | new | {"enabled": True}), inputs.failures)

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Another name or vault is another key; everything else changes in place."""
        changes = diff_properties(_comparable(old_inputs), _comparable(new_inputs))
        return Diff({path: PropertyChange(each.kind, replace=path in _MOVED) for path, each in changes.items()})

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """Make the key and write it; one that an earlier run of this stack has written is taken over."""
        if preview:
            return Created("", inputs | dict.fromkeys(self._outputs, UNKNOWN))
        secret = VaultSecret.of(inputs)
        try:
            found = secret.metadata()
            if inputs["source"] != "vault":
                refuse_foreign(urn, found, inputs)
            if inputs["source"] == "vault" or (found is not None and self.tag in found.tags):
                return Created(secret.id, self._as_in_vault(secret, inputs))
            if found is not None:
                raise PluginError(f"cannot create already existing resource '{found.id}'")
            return Created(secret.id, self._written(secret, inputs))
        except AccessError as error:
            raise PluginError(f"the {self.noun} was not written: {error}") from None

    def read(self, urn: str, id: str, inputs: Props, state: Props) -> ReadResult | None:
        """What ARM shows of it; an import reads `<cloud>/<tenant id><ARM id>`, and the key's public half."""
        is_import = not state
        inputs = inputs or inputs_of_import(id)
        try:
            secret = VaultSecret.of(inputs)
            found = secret.metadata()
            if found is None:
                return None
            if is_import:
                live = schema.marked({"source": "made"} | inputs | self._seen(found))
                return ReadResult(found.id, live, live | self._public(secret) | {"version": found.version})
        except AccessError as error:
            raise PluginError(f"the {self.noun} cannot be read: {error}") from None
        live = inputs | self._seen(found) if inputs["source"] != "vault" else dict(inputs)
        if OWNER not in found.tags:
            live.pop(OWNER_ID, None)
        if found.version != state["version"]:
            live[_REWRITTEN] = True
        return ReadResult(found.id, live, state | live)

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """Another key out of another file; the key in the vault after somebody wrote one; else only the metadata."""
        is_other = old_inputs.get("fileKeyId") != new_inputs.get("fileKeyId")
        if preview:
            is_known = not is_other and _REWRITTEN not in old_inputs
            return new_inputs | {name: old_state[name] if is_known else UNKNOWN for name in self._outputs}
        secret = VaultSecret.of(new_inputs)
        try:
            found = secret.metadata()
            if new_inputs["source"] != "vault":
                refuse_foreign(urn, found, new_inputs, old_inputs)
            if is_other and new_inputs["source"] == "file":
                return self._written(secret, new_inputs)
            if new_inputs["source"] != "vault" and found is not None and found.version == old_state["version"]:
                # The value is not read: that takes a right which a deployer may lack for everything else.
                secret.amend(self._properties(), self._tags(new_inputs, old_state["keyId"]))
                return new_inputs | {name: old_state[name] for name in self._outputs}
            return self._as_in_vault(secret, new_inputs)
        except AccessError as error:
            raise PluginError(f"the {self.noun} was not written: {error}") from None

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        """Delete the secret softly, unless somebody else made it; one that is gone stays so."""
        if inputs["source"] == "vault":
            return
        try:
            VaultSecret.of(inputs).delete()
        except AccessError as error:
            raise PluginError(f"the {self.noun} was not deleted: {error}") from None

    @property
    def _outputs(self) -> tuple[str, ...]:
        return (*self.facts, "version")

    def _written(self, secret: VaultSecret, inputs: Props) -> Props:
        """The state after a new version with the key, which nobody has once this returns."""
        key = self._of_file(inputs) if inputs["source"] == "file" else self.made()
        known = self.described(key)
        written = secret.write(self._properties() | {"value": key}, self._tags(inputs, known["keyId"]))
        log_info(f"the vault has the {self.noun} {known['keyId']} in the secret {secret.name}")
        return inputs | known | {"version": written.version}

    def _as_in_vault(self, secret: VaultSecret, inputs: Props) -> Props:
        """The state of the key that the vault has; what the stack made gets its metadata back."""
        known = self._public(secret)
        if inputs["source"] == "vault":
            found = secret.metadata()
        else:
            found = secret.amend(self._properties(), self._tags(inputs, known["keyId"]))
        return inputs | known | {"version": "" if found is None else found.version}

    def _public(self, secret: VaultSecret) -> Props:
        try:
            return self.described(secret.value())
        except UnusableKeyError as error:
            raise PluginError(
                f"{secret.id} holds {error}; accepted: {self.accepted}. Store the key as a new version"
            ) from None

    def _of_file(self, inputs: Props) -> str:
        path = Path(inputs["file"])
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

    def _tags(self, inputs: Props, key_id: str) -> dict[str, str]:
        owner = {OWNER: inputs[OWNER_ID]} if OWNER_ID in inputs else {}
        return {**inputs.get("tags", {}), self.tag: key_id, **owner}

    def _seen(self, found: SecretMetadata) -> Props:
        tags = {name: value for name, value in found.tags.items() if name not in (self.tag, OWNER)}
        return {"tags": tags, "enabled": found.enabled}


def _comparable(inputs: Props) -> Props:
    return {name: value for name, value in inputs.items() if name not in _UNCOMPARED}
