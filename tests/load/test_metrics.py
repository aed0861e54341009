"""What `/metrics` shows is whole, however often it is asked for while the probe signs in."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from identity.credentials import document
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.events import Event, EventKind
from identity.credentials.probe.metrics import Metrics
from identity.credentials.probe.report import Outcome, ProbeReport
from tests.unit.identity.credentials.probe_process import PATIENCE
from tests.unit.identity.credentials.world import document as document_of

Samples = dict[str, float]
OK = "idstack_sign_ins_total result=ok"
GRANTED = "idstack_proof_calls_total status=200"
RELOADS = "idstack_credential_reloads_total"
NOT_BEFORE = "idstack_credential_not_before_seconds"
NOT_AFTER = "idstack_credential_not_after_seconds"


def samples(text: str) -> Samples:
    """What Prometheus reads there, by name with labels; the moments at which counters were made are left out."""
    return {
        " ".join([sample.name, *(f"{name}={value}" for name, value in sample.labels.items())]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def assert_whole(shown: Samples, issued: IssuedCertificate) -> None:
    """Every round signed in and was granted the proof call; each credential is as much shorter at both ends."""
    assert shown[OK] == shown.get(GRANTED, 0)
    cut = shown[NOT_BEFORE] - issued.not_before.timestamp()
    assert (cut, issued.not_after.timestamp() - shown[NOT_AFTER]) == (shown[RELOADS], shown[RELOADS])


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns after each few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
def test_a_scrape_shows_each_event_and_each_round_as_a_whole(issued: IssuedCertificate) -> None:
    metrics, stopped = Metrics(), threading.Event()
    first = document.decode(document_of(issued))
    now = datetime.now(UTC)
    report = ProbeReport(sign_in=Outcome(None, at=now), proof=Outcome(None, 200, now))

    def serve(cut: int) -> None:
        """What a probe counts of a credential that is so many seconds shorter at both ends."""
        shorter = timedelta(seconds=cut)
        served = replace(first, not_before=first.not_before + shorter, not_after=issued.not_after - shorter)
        metrics.happened(Event(EventKind.SERVED, served, None, is_pending=False), is_reload=cut > 0)
        metrics.proven(report)

    def go_on() -> None:
        for cut in itertools.takewhile(lambda _: not stopped.is_set(), itertools.count(1)):
            serve(cut)

    serve(0)
    writer = threading.Thread(target=go_on)
    writer.start()
    try:
        for _ in range(100):
            assert_whole(samples(metrics.render().decode()), issued)
    finally:
        stopped.set()
        writer.join(PATIENCE)
