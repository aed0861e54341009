"""What the probe counts, for Prometheus."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from identity.credentials.document import Credential
from identity.credentials.events import Event, EventKind
from identity.credentials.probe.credential_source import FederatedToken
from identity.credentials.probe.report import ProbeReport


class Metrics:
    """A registry of its own, so that two probers in one process do not share their counts. Times are Unix seconds.

    Threads may share it: a scrape shows all of an event or round, or nothing of it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.registry = CollectorRegistry()
        self._loads = self._results(
            "idstack_credential_loads",
            "Readings of the credential file: accepted, unchanged or refused",
            (EventKind.ACCEPTED, EventKind.UNCHANGED, EventKind.REFUSED),
        )
        self._reloads = self._counter("idstack_credential_reloads", "Credentials that replaced the one before")
        self._pending = self._gauge(
            "idstack_credential_pending", "1 while a later credential waits for its first token, else 0"
        )
        self._unproven = self._counter(
            "idstack_credential_pending_sign_ins_failed", "Sign-ins that the pending credential failed"
        )
        self._not_before = self._gauge("idstack_credential_not_before_seconds", "From when the credential is valid")
        self._not_after = self._gauge("idstack_credential_not_after_seconds", "When the credential expires")
        self._sign_ins = self._results("idstack_sign_ins", "Sign-ins: ok or failed", ("ok", "failed"))
        self._signed_in_at = self._gauge("idstack_last_sign_in_seconds", "When the last sign-in succeeded")
        self._proofs = self._results("idstack_proof_calls", "Proof calls by HTTP status, or none", label="status")
        self._ready = self._gauge("idstack_ready", "1 if the last sign-in and proof call worked")

    def happened(self, event: Event, *, is_reload: bool) -> None:
        """Count what happened to the mounted credential. `is_reload`: one that replaced another is served."""
        with self._lock:
            self._pending.set(event.is_pending)
            self._reloads.inc(is_reload)
            if event.kind is EventKind.UNPROVEN:
                self._unproven.inc()
            elif event.kind is not EventKind.SERVED:
                self._loads.labels(event.kind).inc()
            elif event.credential:
                self._date(event.credential)

    def read(self, token: FederatedToken, *, is_reload: bool) -> None:
        """Count a service account's token that is read for the first time. `is_reload`: it has replaced another."""
        with self._lock:
            self._loads.labels(EventKind.ACCEPTED).inc()
            self._reloads.inc(is_reload)
            self._date(token)

    def refused(self) -> None:
        """Count a file that could not be loaded while there was no credential yet."""
        with self._lock:
            self._loads.labels(EventKind.REFUSED).inc()

    def proven(self, report: ProbeReport) -> None:
        """Count one round."""
        with self._lock:
            self._ready.set(report.is_ready)
            if report.sign_in:
                self._sign_ins.labels("failed" if report.sign_in.error else "ok").inc()
                if report.sign_in.error is None:
                    self._signed_in_at.set(report.sign_in.at.timestamp())
            if report.proof:
                self._proofs.labels(report.proof.status or "none").inc()

    def render(self) -> bytes:
        """The metrics in the format that a Prometheus server scrapes."""
        with self._lock:
            return generate_latest(self.registry)

    def _date(self, credential: Credential | FederatedToken) -> None:
        self._not_before.set(credential.not_before.timestamp())
        self._not_after.set(credential.expires.timestamp())

    def _gauge(self, name: str, meaning: str) -> Gauge:
        return Gauge(name, meaning, registry=self.registry)

    def _counter(self, name: str, meaning: str) -> Counter:
        return Counter(name, meaning, registry=self.registry)

    def _results(self, name: str, meaning: str, results: Iterable[str] = (), *, label: str = "result") -> Counter:
        """A counter by label. The `results` exist from the start, so that the first one is an increase."""
        counter = Counter(name, meaning, [label], registry=self.registry)
        for result in results:
            counter.labels(result)
        return counter
