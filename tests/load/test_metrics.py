"""What `/metrics` shows is whole and never goes back, however often it is asked for while the probe signs in."""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from identity.credentials import document
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.events import Event, EventKind
from identity.credentials.probe.metrics import Metrics
from identity.credentials.probe.report import ProbeReport, ProofResult, SignInResult
from tests.load.entra import EntraProcess
from tests.unit.identity.credentials.probe_process import PATIENCE, probing
from tests.unit.identity.credentials.world import ARM_SCOPE, CsiMount
from tests.unit.identity.credentials.world import document as document_of

Samples = dict[str, float]
OK = "idstack_sign_ins_total result=ok"
GRANTED = "idstack_proof_calls_total status=200"
RELOADS = "idstack_credential_reloads_total"
ACCEPTED = "idstack_credential_loads_total result=accepted"
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


def scrape(url: str) -> Samples:
    with urllib.request.urlopen(f"{url}/metrics", timeout=PATIENCE) as answer:  # noqa: S310
        return samples(answer.read().decode())


def scrape_until(url: str, name: str, value: float) -> None:
    """Scrape until a counter has come so far; it may not stand still for long."""
    last, ends_at = -1.0, 0.0
    while (shown := scrape(url).get(name, 0)) < value:
        if shown != last:
            last, ends_at = shown, time.monotonic() + PATIENCE
        assert time.monotonic() < ends_at, f"{name} is still {shown}"


def assert_whole(shown: Samples, issued: IssuedCertificate) -> None:
    """Every round signed in and was granted the proof call; each credential is as much shorter at both ends."""
    assert shown[OK] == shown.get(GRANTED, 0)
    cut = shown[NOT_BEFORE] - issued.not_before.timestamp()
    assert (cut, issued.not_after.timestamp() - shown[NOT_AFTER]) == (shown[RELOADS], shown[RELOADS])


def assert_in_order(before: Samples, after: Samples) -> None:
    """No counter goes back, and the last sign-in is no earlier one."""
    lasting = [name for name in before if "_total" in name or name == "idstack_last_sign_in_seconds"]
    assert len(lasting) >= 6
    assert [name for name in lasting if after[name] < before[name]] == []


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
    report = ProbeReport(sign_in=SignInResult(now, None), proof=ProofResult(200, None, now))

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


@pytest.mark.parametrize(
    ("scrapers", "rotations", "rounds"),
    [
        pytest.param(2, 2, 20, id="short"),
        pytest.param(8, 30, 300, id="whole", marks=pytest.mark.nightly),
    ],
)
def test_a_probe_answers_scrapes_while_it_signs_in(
    scrapers: int, rotations: int, rounds: int, entra: EntraProcess, mount: CsiMount, issued: IssuedCertificate
) -> None:
    call = {"method": "GET", "url": f"{entra.arm_url}/tenants?api-version=2022-12-01", "scope": ARM_SCOPE}
    source = f"file:{mount.path}"
    variables = {"REQUESTS_CA_BUNDLE": str(entra.ca_file)}
    arguments = ("--credential", source, "--proof", json.dumps(call), "--interval", "0.001")
    stopped = threading.Event()
    with ThreadPoolExecutor(scrapers + 1) as pool, probing(*arguments, environment=variables) as process:

        def go_on() -> int:
            seen, number = scrape(process.url), 0
            while not stopped.is_set():
                assert_whole(seen, issued)
                later = scrape(process.url)
                assert_in_order(seen, later)
                seen, number = later, number + 1
            return number

        process.until("ready")
        log = pool.submit(lambda: [line for line in process.stderr if "warning" in line or "error" in line])
        scraping = [pool.submit(go_on) for _ in range(scrapers)]
        try:
            for number in range(1, rotations + 1):
                mount.write(entra.document(issued, cut=number))
                scrape_until(process.url, RELOADS, number)
            scrape_until(process.url, OK, rounds)
        finally:
            stopped.set()
        assert all(future.result(PATIENCE) > 0 for future in scraping)
        shown = scrape(process.url)
        assert shown[ACCEPTED] == rotations + 1
        assert shown["idstack_sign_ins_total result=failed"] == 0
        process.process.terminate()
        assert log.result(PATIENCE) == []
