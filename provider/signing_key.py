"""`SigningKeyResource`: a key that signs service-account tokens. The vault has it, and the state its public half.

The key is made, or read from a file, in one call and forgotten at its end. What the vault has is the truth: a run that
was cut short after the write finds it there, and a version that somebody else wrote is taken over.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from identity.access.errors import AccessError
from identity.credentials import signing_key
from identity.credentials.secret_tags import OWNER, SIGNING_KEY_ID
from identity.credentials.signing_key import PublicKey, UnusableKey
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
from provider.vault_secrets import SecretMetadata, VaultSecret, inputs_of_import

CONTENT_TYPE: Final = "application/x-pem-file"
# Who makes the key: this plugin, or somebody else, in a file or in the vault already.
SOURCES: Final = ("made", "file", "vault")
_PLACE: Final = ("cloud", "tenantId", "vaultId", "secretName")
_MOVED: Final = frozenset({"vaultId", "secretName"})
_PUBLIC: Final = ("keyId", "jwk", "publicKeyPem")
_OUTPUTS: Final = (*_PUBLIC, "version")
# Where the file lies says nothing about its key, which `fileKeyId` names.
_UNCOMPARED: Final = frozenset({"file"})
# Only a refresh has it among the inputs, so the next update reads what somebody wrote into the vault.
_REWRITTEN: Final = "rewritten"


class SigningKeyResource(Resource):
    """Inputs: `cloud`, `tenantId`; `vaultId` (ARM id), `secretName`, `source` (`made`, `file` or `vault`), `tags`; with
    `file` its path from the project's folder, and `fileKeyId`, the id of the key in it; `ownerId` of the stack.

    Outputs also: `keyId` (the `kid` of its tokens), `jwk` (RFC 7517), `publicKeyPem`, `version`, none of them secret;
    `enabled`, which a person may change; after a refresh `rewritten`, if somebody wrote another version.

    A secret with `source: vault` is only read: it is neither changed nor deleted.
    """

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Validate."""
        inputs = Inputs(new)
        for name in _PLACE:
            inputs.string(name)
        if new.get("source", "made") not in SOURCES:
            inputs.refuse("source", ", ".join(SOURCES))
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
            return Created("", inputs | dict.fromkeys(_OUTPUTS, UNKNOWN))
        secret = VaultSecret.of(inputs)
        try:
            found = secret.metadata()
            if inputs["source"] != "vault":
                refuse_foreign(urn, found, inputs)
            if inputs["source"] == "vault" or (found is not None and SIGNING_KEY_ID in found.tags):
                return Created(secret.id, _as_in_vault(secret, inputs))
            if found is not None:
                raise PluginError(f"cannot create already existing resource '{found.id}'")
            return Created(secret.id, _written(secret, inputs))
        except AccessError as error:
            raise PluginError(f"the signing key was not written: {error}") from None

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
                live = schema.marked({"source": "made"} | inputs | _seen(found))
                return ReadResult(found.id, live, live | _public(secret) | {"version": found.version})
        except AccessError as error:
            raise PluginError(f"the signing key cannot be read: {error}") from None
        live = inputs | _seen(found) if inputs["source"] != "vault" else dict(inputs)
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
            return new_inputs | ({name: old_state[name] for name in _OUTPUTS} if is_known else _unknown())
        secret = VaultSecret.of(new_inputs)
        try:
            found = secret.metadata()
            if new_inputs["source"] != "vault":
                refuse_foreign(urn, found, new_inputs, old_inputs)
            if is_other and new_inputs["source"] == "file":
                return _written(secret, new_inputs)
            if new_inputs["source"] != "vault" and found is not None and found.version == old_state["version"]:
                # The value is not read: that takes a right which a deployer may lack for everything else.
                secret.amend(_properties(), _tags(new_inputs, old_state["keyId"]))
                return new_inputs | {name: old_state[name] for name in _OUTPUTS}
            return _as_in_vault(secret, new_inputs)
        except AccessError as error:
            raise PluginError(f"the signing key was not written: {error}") from None

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        """Delete the secret softly, unless somebody else made it; one that is gone stays so."""
        if inputs["source"] == "vault":
            return
        try:
            VaultSecret.of(inputs).delete()
        except AccessError as error:
            raise PluginError(f"the signing key was not deleted: {error}") from None


def _comparable(inputs: Props) -> Props:
    return {name: value for name, value in inputs.items() if name not in _UNCOMPARED}


def _unknown() -> Props:
    return dict.fromkeys(_OUTPUTS, UNKNOWN)


def _written(secret: VaultSecret, inputs: Props) -> Props:
    """The state after a new version with the key, which nobody has once this returns."""
    pem = _of_file(inputs) if inputs["source"] == "file" else signing_key.make()
    public = signing_key.public_half(pem)
    written = secret.write(_properties() | {"value": pem}, _tags(inputs, public.key_id))
    log_info(f"the vault has the signing key {public.key_id} in the secret {secret.name}")
    return inputs | _described(public) | {"version": written.version}


def _as_in_vault(secret: VaultSecret, inputs: Props) -> Props:
    """The state of the key that the vault has; what the stack made gets its metadata back."""
    public = _public(secret)
    if inputs["source"] == "vault":
        found = secret.metadata()
    else:
        found = secret.amend(_properties(), _tags(inputs, public["keyId"]))
    return inputs | public | {"version": "" if found is None else found.version}


def _public(secret: VaultSecret) -> Props:
    try:
        return _described(signing_key.public_half(secret.value()))
    except UnusableKey as error:
        raise PluginError(
            f"{secret.id} holds {error}; accepted: an RSA private key in PEM. Store the key as a new version"
        ) from None


def _of_file(inputs: Props) -> str:
    path = Path(inputs["file"])
    try:
        pem = signing_key.normalize(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PluginError(f"{path} cannot be read ({type(error).__name__}); put the key there again") from None
    except UnusableKey as error:
        raise PluginError(f"{path} holds {error}; put the key there again") from None
    if signing_key.public_half(pem).key_id != inputs["fileKeyId"]:
        raise PluginError(f"{path} changed while the stack was brought up; run the command again")
    return pem


def _described(public: PublicKey) -> Props:
    return {"keyId": public.key_id, "jwk": dict(public.jwk), "publicKeyPem": public.pem}


def _properties() -> Props:
    return {"contentType": CONTENT_TYPE, "attributes": {"enabled": True}}


def _tags(inputs: Props, key_id: str) -> dict[str, str]:
    owner = {OWNER: inputs[OWNER_ID]} if OWNER_ID in inputs else {}
    return {**inputs.get("tags", {}), SIGNING_KEY_ID: key_id, **owner}


def _seen(found: SecretMetadata) -> Props:
    tags = {name: value for name, value in found.tags.items() if name not in (SIGNING_KEY_ID, OWNER)}
    return {"tags": tags, "enabled": found.enabled}
