"""`idstack doctor` as a command: stages to choose, exit codes, JSON, and what a stack needs on its cluster."""

from __future__ import annotations

import io
import json
import re

import pytest
from rich.console import Console
from rich.text import Text

from identity.aks.kinds import AZURE_CLUSTER_IDENTITIES
from identity.aks.permissions import permissions
from ops.commands import doctor
from ops.commands.doctor import INTERVAL, watch
from tests.unit.access_world import FakeApiServer
from tests.unit.identity.settings.world import ABSENT, configuration
from tests.unit.ops.conftest import FakeEngine, Idstack

ACCESS = ("doctor", "--stage", "access", "--stack", "dev")


@pytest.fixture
def api(cluster_api: FakeApiServer, engine: FakeEngine) -> FakeApiServer:
    engine.configures(**configuration(managementCluster__kubeconfig=ABSENT))
    return cluster_api


@pytest.mark.parametrize("infra_id", ["hc1-infra", "example-hc1"], ids=["filled in", "a placeholder of one cluster"])
def test_a_stack_that_lacks_nothing_is_told_so(
    engine: FakeEngine, idstack: Idstack, api: FakeApiServer, infra_id: str
) -> None:
    engine.configures(**configuration(managementCluster__kubeconfig=ABSENT, hostedClusters__0__infraID=infra_id))

    printed = idstack(*ACCESS)

    assert (printed.code, printed.output, printed.error) == (0, "dev: nothing is broken; 2 checks\n", "")
    assert not [call for call in engine.calls if call.startswith("stack ")], "access needs no state"


def test_a_kind_that_is_missing_is_named_with_what_brings_it(
    engine: FakeEngine, idstack: Idstack, api: FakeApiServer
) -> None:
    api.absent = {AZURE_CLUSTER_IDENTITIES.version}

    printed = idstack(*ACCESS)
    document = json.loads(idstack(*ACCESS, "--stage", "engine", "--json").output)

    engine_state, _, access = document["results"]
    counts = {"findings": 1, "checks": 3, "identities": 0, "skipped": 0, "notChecked": 0}
    assert (document["stack"], document["summary"], engine_state["status"]) == ("dev", counts, "ok")
    place = {"cluster": None, "identity": None, "stage": "access", "check": "permissions", "status": "broken"}
    assert access.items() >= place.items()
    lines = printed.output.splitlines()
    assert (printed.code, printed.error, lines[0]) == (1, "", "broken  access (permissions)")
    assert lines[1].endswith(" lacks kinds: azureclusteridentities.infrastructure.cluster.x-k8s.io/v1beta1")
    source = "`hypershift install --install-scope=crds --limit-crd-install=Azure`"
    assert lines[2] == f"    fix    Kinds: azureclusteridentities come with {source}"
    assert lines[-1] == "dev: 1 finding; 2 checks"


def test_a_reader_is_not_taken_for_the_deployer(engine: FakeEngine, idstack: Idstack, api: FakeApiServer) -> None:
    api.denied = {
        f"{permission.verb} {permission.resource}"
        for permission in permissions()
        if permission.verb in ("create", "patch", "delete")
    }

    printed = idstack(*ACCESS)

    assert printed.code == 3
    assert "not checked  access (permissions)" in printed.output
    assert "run `.venv/bin/idstack doctor --stack dev --stage access` as the deployer" in printed.output


def test_the_access_of_a_stack_without_a_cluster_is_not_checked(engine: FakeEngine, idstack: Idstack) -> None:
    printed = idstack(*ACCESS)

    assert (printed.code, "why    the stack dev has no managementCluster" in printed.output) == (3, True)


@pytest.mark.parametrize("is_read", [True, False])
def test_with_placeholders_no_sign_in_is_blamed(engine: FakeEngine, idstack: Idstack, is_read: bool) -> None:
    engine.configures(**configuration(tenantId="00000000-0000-0000-0000-000000000000"))
    if not is_read:
        engine.has_no_stack()

    printed = idstack("doctor", "--stack", "dev")

    broken, *_, unread, _ = printed.output.split("\n\n")
    checks = ("lock", "abandoned-lock", "pending-operations", "last-run", "decryption")
    of_state = [] if is_read else ["engine (state)", *(f"backend ({check})" for check in checks)]
    of_access = ["access (azure)", "access (permissions)"]
    of_application = [] if is_read else ["applications (added-credentials)"]
    why = "Pulumi.dev.yaml still has placeholders, with which no sign-in works"
    assert (printed.code, printed.output.count("broken  ")) == (1, 1)
    assert broken.startswith("broken  configuration (settings)\n    found  idstack:tenantId: found ")
    assert unread == f"not checked  {', '.join([*of_state, *of_access, *of_application])}\n    why    {why}"


def test_a_report_that_moves_is_no_document(engine: FakeEngine, idstack: Idstack) -> None:
    printed = idstack("doctor", "--stack", "dev", "--watch", "--json")

    assert (printed.code, "--watch is for a terminal" in " ".join(printed.error.split())) == (2, True)


def test_watching_ends_with_the_result_of_the_last_look(
    engine: FakeEngine, idstack: Idstack, api: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "sleep", interrupted)
    api.absent = {AZURE_CLUSTER_IDENTITIES.version}

    printed = idstack(*ACCESS, "--watch")

    assert (printed.code, "1 finding" in printed.output) == (1, True)


def test_waiting_ends_as_soon_as_nothing_is_broken_or_the_time_is_over(
    engine: FakeEngine, idstack: Idstack, api: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "sleep", lambda _: api.absent.clear())
    api.absent = {AZURE_CLUSTER_IDENTITIES.version}

    in_vain = idstack(*ACCESS, "--wait", "--timeout", "0")
    printed = idstack(*ACCESS, "--wait")

    assert (in_vain.code, "broken  access (permissions)" in in_vain.output, in_vain.error) == (1, True, "")
    assert (printed.code, printed.output) == (0, "dev: nothing is broken; 2 checks\n")
    assert printed.error == "dev: 1 finding; 2 checks; again in 15 s\n"


def test_without_a_stack_there_is_one_finding(engine: FakeEngine, idstack: Idstack) -> None:
    (engine.folder / "outputs.json").unlink()

    printed = idstack("doctor", "--stack", "dev")

    assert printed.code == 1
    assert [line for line in printed.output.splitlines() if not line.startswith(" ")] == [
        "broken  engine (state)",
        "",
        "dev: 1 finding; 34 checks; 33 skipped behind a broken stage",
    ]
    assert [call for call in engine.calls if not call.startswith("stack export")] == []


def test_an_unknown_stage_is_answered_with_the_nearest(idstack: Idstack) -> None:
    printed = idstack("doctor", "--stage", "vualt")

    assert printed.code == 2
    words = " ".join(printed.error.replace("│", " ").split())
    assert 'there is no stage vualt; did you mean "vault"? Stages: engine, backend, access,' in words


def test_each_look_is_shown_until_ctrl_c_and_the_last_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, pauses = iter(["first", "second", "third"]), []
    screen = io.StringIO()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "sleep", pause)

    last = watch(lambda: next(looks), lambda found: Text(found), Console(file=screen, force_terminal=True, width=80))

    assert (last, pauses) == ("second", [INTERVAL, INTERVAL])
    shown = screen.getvalue()
    assert shown.index("first") < shown.index("second")
    assert re.search(r"\d\d:\d\d:\d\d; again in 15 s, Ctrl-C ends", shown)


def test_ctrl_c_during_the_first_look_returns_nothing() -> None:
    def look() -> str:
        raise KeyboardInterrupt

    assert watch(look, lambda found: Text(found), Console(file=io.StringIO())) is None


@pytest.mark.parametrize(("looks", "code"), [(2, 0), (9, 1)], ids=["until it is over", "until the time is"])
def test_waiting_ends_when_it_is_over_or_the_time_is(
    engine: FakeEngine, idstack: Idstack, api: FakeApiServer, monkeypatch: pytest.MonkeyPatch, looks: int, code: int
) -> None:
    pauses: list[float] = []

    def pause(length: float) -> None:
        pauses.append(length)
        api.absent = set() if len(pauses) == looks else api.absent

    monkeypatch.setattr(doctor, "sleep", pause)
    monkeypatch.setattr(doctor, "monotonic", lambda: sum(pauses))
    api.absent = {AZURE_CLUSTER_IDENTITIES.version}

    printed = idstack(*ACCESS, "--wait", "--timeout", "40")

    assert (printed.code, pauses) == (code, [15, 15, 10][: 3 if code else looks])
    assert printed.error.splitlines() == ["dev: 1 finding; 2 checks; again in 15 s"] * len(pauses)
