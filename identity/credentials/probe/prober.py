"""The probe's loop: find the file, load it, sign in, make the proof call if there is one, and keep the result."""

from __future__ import annotations

import logging
import os
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from azure.core.credentials import AccessToken
from azure.core.exceptions import AzureError
from azure.identity import CredentialUnavailableError

from identity.credentials.backoff import Backoff
from identity.credentials.document import Credential, InvalidCredentialError
from identity.credentials.events import Event, EventKind
from identity.credentials.probe.credential_source import CredentialNotNamedError, CredentialSource, FederatedToken
from identity.credentials.probe.metrics import Metrics
from identity.credentials.probe.report import Outcome, ProbeReport, ProofRequest
from identity.credentials.sign_in import refusal, sign_in
from identity.credentials.token_credential import ARM_SCOPE, MountedCredential

_LOG: Final = logging.getLogger(__name__)

# Seconds between the rounds while the credential does not work.
_FIRST_RETRY: Final = 0.5
_LONGEST_RETRY: Final = 5.0


class Prober:
    """Proves a credential repeatedly. `report` is the last result, `reloads` how often a new credential came."""

    def __init__(self, source: CredentialSource, call: ProofRequest | None, metrics: Metrics) -> None:
        self.report = ProbeReport()
        self.reloads = 0
        self._source = source
        self._call = call
        self._metrics = metrics
        self._mounted: MountedCredential | None = None
        self._token: FederatedToken | None = None
        self._woken = threading.Event()
        self._stopped = False

    def run(self, interval: timedelta) -> None:
        """Prove until `stop`: every `interval` while ready, sooner after a failure, at once after a reload."""
        backoff = Backoff(_FIRST_RETRY, _LONGEST_RETRY)
        while True:
            self._woken.clear()
            if self._stopped:
                return
            self.prove()
            if self.report.is_ready:
                backoff.reset()
            self._woken.wait(interval.total_seconds() if self.report.is_ready else backoff.next())

    def stop(self) -> None:
        """End `run` after the current round. Not to be called from a signal handler."""
        self._stopped = True
        self._woken.set()

    def close(self) -> None:
        """Stop watching the file."""
        mounted, self._mounted = self._mounted, None
        if mounted:
            mounted.close()

    @property
    def unwatched(self) -> Path | None:
        """The loaded credential file if it is no longer watched, which is a defect; otherwise None."""
        mounted = self._mounted
        return None if mounted is None or mounted.is_watching else mounted.path

    def prove(self) -> ProbeReport:
        """One round."""
        before, self.report = self.report, self._round()
        self._metrics.proven(self.report)
        if self.report.error and self.report.error != before.error:
            _LOG.warning("not ready", extra={"fields": {"error": self.report.error}})
        elif self.report.is_ready and not before.is_ready:
            _LOG.info("ready", extra={"fields": self.to_json()})
        return self.report

    def to_json(self) -> dict[str, Any]:
        """The last report with the action and the number of reloads."""
        return self.report.to_json(action=self._call.action if self._call else None, reloads=self.reloads)

    def _round(self) -> ProbeReport:
        try:
            file = self._source.path()
        except CredentialNotNamedError as error:
            return ProbeReport(sign_in=Outcome(str(error)))
        try:
            credential = self._load(file)
        except (CredentialUnavailableError, InvalidCredentialError) as error:
            self._metrics.refused()
            return ProbeReport(file=file, sign_in=Outcome(str(error)))
        try:
            token = _sign_in(credential, self._call.scope if self._call else ARM_SCOPE)
        except AzureError as error:
            return ProbeReport(file=file, credential=credential, sign_in=Outcome(str(refusal(error))))
        signed_in = Outcome(None)
        if self._call is None:
            return ProbeReport(file=file, credential=credential, sign_in=signed_in, needs_proof=False)
        proof = self._call.make(token.token)
        return ProbeReport(file=file, credential=credential, sign_in=signed_in, proof=proof)

    def _load(self, file: Path) -> Credential | FederatedToken:
        if self._source.kind == "token":
            return self._load_token(file)
        if self._mounted is None or self._mounted.path != file:
            self.close()
            self._mounted = MountedCredential(file, on_event=self._happened)
        return self._mounted.credential

    def _load_token(self, file: Path) -> FederatedToken:
        """The file is read in each round, as azidentity reads it for each exchange: no watch is needed."""
        before, self._token = self._token, FederatedToken.read(file, os.environ)
        if self._token != before:
            self._metrics.read(self._token, is_reload=before is not None)
            self.reloads += before is not None
        return self._token

    def _happened(self, event: Event) -> None:
        is_reload = event.kind is EventKind.SERVED and self._mounted is not None
        self._metrics.happened(event, is_reload=is_reload)
        if is_reload:
            self.reloads += 1
            self._woken.set()


def _sign_in(credential: Credential | FederatedToken, scope: str) -> AccessToken:
    if isinstance(credential, FederatedToken):
        return credential.sign_in(scope)
    pem = credential.key_material.pem()
    return sign_in(credential.authority_host, credential.tenant_id, credential.client_id, pem, scope)
