"""What the probe counts, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from identity.credentials.probe.report import Report
from identity.credentials.token_credential import Load


class Metrics:
    """A registry of its own, so that two probers in one process do not share their counts. Times are Unix seconds."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._loads = Counter(
            "idstack_credential_loads",
            "Readings of the credential file: loaded, unchanged or refused",
            ["result"],
            registry=self.registry,
        )
        self.reloads = Counter(
            "idstack_credential_reloads", "Credentials that replaced the one before", registry=self.registry
        )
        self._not_before = Gauge(
            "idstack_credential_not_before_seconds", "From when the credential is valid", registry=self.registry
        )
        self._not_after = Gauge(
            "idstack_credential_not_after_seconds", "When the credential expires", registry=self.registry
        )
        self._sign_ins = Counter("idstack_sign_ins", "Sign-ins: ok or failed", ["result"], registry=self.registry)
        self._signed_in_at = Gauge(
            "idstack_last_sign_in_seconds", "When the last sign-in succeeded", registry=self.registry
        )
        self._proofs = Counter(
            "idstack_proof_calls", "Proof calls by HTTP status, or none", ["status"], registry=self.registry
        )
        self._ready = Gauge("idstack_ready", "1 if the last sign-in and proof call worked", registry=self.registry)

    def loaded(self, load: Load) -> None:
        """Count one reading of the file."""
        self._loads.labels("refused" if load.problem else "loaded" if load.replaced else "unchanged").inc()
        if load.replaced and load.credential:
            self._not_before.set(load.credential.not_before.timestamp())
            self._not_after.set(load.credential.expires.timestamp())

    def proven(self, report: Report) -> None:
        """Count one round."""
        self._ready.set(report.is_ready)
        if report.sign_in:
            self._sign_ins.labels("failed" if report.sign_in.error else "ok").inc()
            if report.sign_in.error is None:
                self._signed_in_at.set(report.sign_in.at.timestamp())
        if report.proof:
            self._proofs.labels(report.proof.outcome.status or "none").inc()

    def render(self) -> bytes:
        """The text a Prometheus server scrapes."""
        return generate_latest(self.registry)
