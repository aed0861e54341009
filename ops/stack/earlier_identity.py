"""One control-plane identity in a state of the release before, and what the inputs of this release say about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from identity.clouds import CLOUDS
from identity.credentials import rfc3339
from identity.credentials.certificate import CLOCK_SKEW, key_id
from ops.stack.state import StateResource

OWN: Final = "idstack:index:"
SCHEDULE: Final = f"{OWN}RenewalSchedule"
CERTIFICATE: Final = f"{OWN}Certificate"
GATE: Final = f"{OWN}SignInGate"
OLD_SECRET: Final = "azure-native:keyvault:Secret"
REGISTRATION: Final = "azuread:index/applicationCertificate:ApplicationCertificate"
_APPLICATION: Final = "azuread:index/application:Application"
_PRINCIPAL: Final = "azuread:index/servicePrincipal:ServicePrincipal"
_IMPORTED: Final = "idstack:azure:ImportedCredential"
_SLOTS: Final = ("a", "b")
_DEFAULT_ENCODING: Final = "utf-8"


@dataclass(frozen=True)
class EarlierSlot:
    """One certificate of an identity as the state has it. A run that was killed may have left a part alone."""

    name: str
    issue: Mapping[str, Any]
    certificate: StateResource | None
    registration: StateResource | None
    gate: StateResource | None

    @property
    def not_before(self) -> str:
        """RFC 3339."""
        return str(self.issue["notBefore"])

    @property
    def delivery(self) -> str:
        """EarlierSlot and generation (`a2`)."""
        return f"{self.name}{self.issue['generation']}"

    @property
    def thumbprint(self) -> str | None:
        """SHA-1 in upper-case hexadecimal; it is the certificate's id."""
        return self.certificate.get("id") if self.certificate else None

    @property
    def key_id(self) -> str:
        """Under which the certificate is registered, or would be."""
        registered = outputs_of(self.registration).get("keyId")
        return str(registered or key_id(self.thumbprint or self.delivery))


class EarlierIdentity:
    """The parts of one identity, and what is computed from them."""

    def __init__(
        self,
        members: list[StateResource],
        described: Mapping[str, Any],
        vault_id: str | None,
        place: Mapping[str, Any],
    ) -> None:
        """`described`: its row in the stack's outputs, empty before the first complete run; `vault_id` as there."""
        self._members = members
        self._described = described
        self._vault_id = vault_id
        self.place = dict(place)

    def _one(self, type_token: str, suffix: str = "") -> StateResource | None:
        found = (each for each in self._members if each["type"] == type_token and each["urn"].endswith(suffix))
        return next(found, None)

    @property
    def _schedule(self) -> Mapping[str, Any] | None:
        found = self._one(SCHEDULE)
        return None if found is None else inputs_of(found)

    @property
    def _secret(self) -> StateResource | None:
        return self._one(OLD_SECRET)

    @property
    def _slots(self) -> dict[str, EarlierSlot]:
        issued = self._schedule or {}
        return {
            name: EarlierSlot(
                name,
                issued[name],
                self._one(CERTIFICATE, f"-certificate-{name}"),
                self._one(REGISTRATION, f"-registration-{name}"),
                self._one(GATE, f"-gate-{name}"),
            )
            for name in _SLOTS
            if issued.get(name) is not None
        }

    def slot_of(self, certificate: StateResource) -> EarlierSlot:
        """The slot of a certificate; its issue is what the certificate was made for."""
        name = certificate["urn"][-1]
        registration = self._one(REGISTRATION, f"-registration-{name}")
        return EarlierSlot(name, inputs_of(certificate), certificate, registration, None)

    @property
    def application_id(self) -> str | None:
        """`/applications/<object id>`."""
        found = self._one(_APPLICATION)
        return None if found is None else found.get("id")

    @property
    def address(self) -> dict[str, str] | None:
        """Vault and name of the secret; None if neither the state nor the outputs know, and so no pod has it."""
        secret = self._secret
        if secret is not None:
            inputs, own = inputs_of(secret), str(secret.get("id", "")).rpartition("/secrets/")[0]
            same = self._vault_id and self._vault_id.rpartition("/")[2].lower() == str(inputs["vaultName"]).lower()
            return {"vaultId": str(self._vault_id) if same else own, "secretName": str(inputs["secretName"])}
        if self._vault_id and "credentialsSecretName" in self._described:
            return {"vaultId": self._vault_id, "secretName": self._described["credentialsSecretName"]}
        return None

    @property
    def _attributes(self) -> Mapping[str, Any]:
        return mapping(mapping(inputs_of(self._secret).get("properties")).get("attributes"))

    @property
    def _delivered(self) -> EarlierSlot | None:
        """The slot whose certificate the secret has: the secret has its first second."""
        not_before = _moment(self._attributes.get("notBefore"))
        thumbprint = self._described.get("thumbprint")
        for slot in self._slots.values():
            if not_before == slot.not_before if not_before else thumbprint and thumbprint == slot.thumbprint:
                return slot
        return None

    @property
    def written_at(self) -> str | None:
        """When the secret was written; if the state does not say, when the certificate in it was issued."""
        properties = mapping(outputs_of(self._secret).get("properties"))
        created = _moment(mapping(properties.get("attributes")).get("created"))
        start = self._delivered.not_before if self._delivered else _moment(self._attributes.get("notBefore"))
        return created or (rfc3339.render(rfc3339.parse(start) + CLOCK_SKEW) if start else None)

    @property
    def delivery(self) -> dict[str, str] | None:
        """The schedule's record of the last delivery."""
        slot, at = self._delivered, self.written_at
        return {"name": slot.delivery, "at": at} if slot is not None and at is not None else None

    @property
    def spare_was_never_used(self) -> bool:
        """The release before issued slot b with slot a; its certificate was the next one, and no pod ever had it."""
        slots = self._slots
        is_first = self._schedule is not None and self._schedule["current"] == "a" and "b" in slots
        if not is_first or slots["b"].issue["generation"] != 1:
            return False
        return self._delivered is None or self._delivered.name == "a"

    def schedule_inputs(self) -> dict[str, Any]:
        """The schedule's inputs of which the document in the vault is made."""
        gate = inputs_of(next((each.gate for each in self._slots.values() if each.gate is not None), None))
        host = gate.get("authorityHost") or ""
        if not host and self.place["cloud"] in CLOUDS:
            host = CLOUDS[self.place["cloud"]].authority_host
        return {
            **self.place,
            **(self.address or {}),
            "objectEncoding": self._encoding,
            "authorityHost": host,
            "clientId": outputs_of(self._one(_APPLICATION)).get("clientId"),
        }

    @property
    def _encoding(self) -> str:
        return str(self._described.get("objectEncoding") or _DEFAULT_ENCODING)

    def secret_inputs(self) -> dict[str, Any]:
        """The inputs of the plugin's secret, as its Check would have written them."""
        tags = dict(mapping(inputs_of(self._secret).get("tags")))
        dates = {
            "notBefore": _moment(self._attributes.get("notBefore")),
            "notAfter": _moment(self._attributes.get("expires")),
            "renewAfter": tags.pop("renew_after", None),
            "cannotRenewAfter": tags.pop("cannot_renew_after", None),
        }
        of_credential = self._imported() if self._schedule is None else self._issued()
        found = {
            **self.place,
            **(self.address or {}),
            "objectEncoding": self._encoding,
            "tags": tags,
            **of_credential,
            **dates,
            "enabled": self._attributes.get("enabled", True),
        }
        return {name: value for name, value in found.items() if value is not None}

    def _issued(self) -> dict[str, Any]:
        slot = self._delivered
        return {
            "authorityHost": self.schedule_inputs()["authorityHost"],
            "clientId": outputs_of(self._one(_APPLICATION)).get("clientId"),
            "objectId": outputs_of(self._one(_PRINCIPAL)).get("objectId"),
            "thumbprint": slot.thumbprint if slot else None,
            "generation": slot.delivery if slot else None,
            "provenAt": outputs_of(slot.gate).get("provenAt") if slot else None,
        }

    def _imported(self) -> dict[str, Any]:
        """A managed identity's; in which file its document was, nobody compares."""
        shown = outputs_of(self._one(_IMPORTED))
        return {"clientId": shown.get("client_id"), "thumbprint": mapping(shown.get("shown")).get("thumbprint")}


def inputs_of(resource: StateResource | None) -> dict[str, Any]:
    """The inputs of a resource that may not be there."""
    return {} if resource is None else resource.get("inputs") or {}


def outputs_of(resource: StateResource | None) -> dict[str, Any]:
    """The outputs of a resource that may not be there."""
    return {} if resource is None else resource.get("outputs") or {}


def mapping(value: object) -> Mapping[str, Any]:
    """The value itself; empty for anything else, a secret for instance."""
    return value if isinstance(value, Mapping) else {}


def _moment(seconds: object) -> str | None:
    """Unix seconds as RFC 3339; None for anything else, a secret for instance."""
    return rfc3339.render(datetime.fromtimestamp(seconds, UTC)) if isinstance(seconds, int | float) else None
