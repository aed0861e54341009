"""The commands from the outside: exit codes, what is printed where, and what the engine is asked to do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from identity import resource_types
from localcloud.testing.hosts import Serve
from ops.stack import local_cloud
from ops.stack.errors import CommandError
from tests.records import write_record
from tests.unit.ops.conftest import FakeEngine, Idstack
from tests.unit.ops.stacks import (
    FakeCluster,
    local_environment,
    output,
    probe,
    refused,
    report,
    running,
    write_kubeconfig,
)


def outputs(infra_id: str = "hc1", **changes: Any) -> dict[str, Any]:
    """A stack with one identity, its output changed."""
    ingress = output("managed-azure-ingress", "ingress-hc1-json", **changes)
    cluster = {"controlPlane": {"ingress": ingress}, "dataPlane": {}, "hostedClusterSpec": {"infraID": infra_id}}
    return {"hostedClusters": {"hc1": {"namespace": "clusters", **cluster}}}


@pytest.fixture
def recorded(tmp_path: Path, serve_plain: Serve) -> FakeCluster:
    """The cluster of a local cloud that left its record, without a pod."""
    cluster = FakeCluster()
    state = tmp_path / "state"
    state.mkdir()
    kubeconfig = write_kubeconfig(state / "kubeconfig", serve_plain(cluster.app()))
    write_record(state / "environment.json", local_environment(state, kubeconfig))
    return cluster


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Commands of the local cloud, noted instead of run."""
    noted: list[str] = []

    def run(arguments: Sequence[str], **_: object) -> int:
        noted.append(" ".join(arguments))
        return 0

    monkeypatch.setattr(local_cloud, "run", run)
    return noted


CANNOT_SIGN_IN = (
    "idstack: these identities cannot sign in: ingress. `.venv/bin/idstack doctor --stack {}` finds the cause of each\n"
)
NO_LOCAL_STACK = (
    "idstack: there is no local stack: `.venv/bin/idstack up --stack local` creates one. Name another one with "
    "--stack: dev, prod, stage\n"
)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        *((words, NO_LOCAL_STACK) for words in ("status", "doctor", "kubeconfig", "renew", "rotate", "recover")),
        ("rbac 99999999-8888-4777-8666-555555555555", NO_LOCAL_STACK),
        (
            "status --stack local-hypershift",
            "idstack: there is no local stack: `.venv/bin/idstack up --stack local-hypershift` creates one\n",
        ),
    ],
)
def test_an_error_is_one_paragraph_and_code_1(
    engine: FakeEngine, idstack: Idstack, ran: list[str], words: str, error: str
) -> None:
    printed = idstack(*words.split())
    assert (printed.code, printed.output, printed.error, ran) == (1, "", error, [])


def test_an_overdue_renewal_is_code_3(engine: FakeEngine, idstack: Idstack, tmp_path: Path) -> None:
    engine.has(outputs(notAfter="2999-02-19T16:50:04Z", renewAfter="2026-01-05T16:50:04Z"))
    file = tmp_path / "idstack.prom"

    printed = idstack("status", "--stack", "dev", "--metrics", str(file))

    assert printed.code == 3
    assert "overdue: ingress of hc1. `.venv/bin/idstack renew --stack dev` renews" in printed.error
    assert "This machine's clock decides, which shows " in printed.error
    assert 'idstack_status_renewal_overdue{cluster="hc1",identity="ingress",stack="dev"} 1.0' in file.read_text()


def test_an_expired_certificate_is_shown_and_is_an_error_whatever_is_due(engine: FakeEngine, idstack: Idstack) -> None:
    engine.has(outputs(notAfter="2020-01-31T09:30:00Z", renewAfter="2020-01-05T16:50:04Z"))
    printed = idstack("status", "--stack", "dev")
    assert "2020-01-31" in printed.output
    assert (printed.code, printed.error) == (1, CANNOT_SIGN_IN.format("dev"))
    document = json.loads(idstack("status", "--stack", "dev", "--json").output)
    [row] = document["rows"]
    assert (row["identity"], row["mounts"], row["daysLeft"] < 0) == ("ingress", [], True)
    assert set(engine.calls) == {"stack export --stack dev --non-interactive"}


def test_a_local_sign_in_that_fails_is_shown_and_is_an_error(
    engine: FakeEngine, idstack: Idstack, recorded: FakeCluster, serve_plain: Serve
) -> None:
    engine.has(outputs(notAfter="2999-02-19T16:50:04Z"))
    recorded.add_pod("probe-ingress", **running(serve_plain(probe(refused("AADSTS700016: not found")))))
    printed = idstack("status")
    assert "AADSTS700016: not found" in printed.output
    assert (printed.code, printed.error) == (1, CANNOT_SIGN_IN.format("local"))


def test_up_passes_options_to_the_engine_and_ends_with_the_status(engine: FakeEngine, idstack: Idstack) -> None:
    engine.has(outputs(notAfter="2999-02-19T16:50:04Z"))
    printed = idstack("up", "--stack", "dev", "--diff", "--target", "urn:x")
    assert printed.code == 0
    assert engine.calls == [
        "stack export --stack dev --non-interactive",
        "up --policy-pack policies --diff --target urn:x --stack dev",
        "stack export --stack dev --non-interactive",
    ]
    assert printed.output.startswith("output of pulumi up\n")
    assert "managed-azure-ingress" in printed.output
    as_json = idstack("up", "--stack", "dev", "--json")
    assert json.loads(as_json.output)["rows"][0]["identity"] == "ingress"
    assert "output of pulumi up\n" in as_json.error


def test_an_engine_that_fails_is_an_error_and_nothing_follows(engine: FakeEngine, idstack: Idstack) -> None:
    engine.ends_with(255)
    engine.has(outputs())
    printed = idstack("up", "--stack", "dev")
    told = "idstack: `pulumi up` ended with code 255; the reason is printed above\n"
    assert (printed.code, printed.error) == (1, told)
    assert engine.calls[1:] == ["up --policy-pack policies --stack dev"]


def test_preview_and_down_of_another_stack_are_the_engines(engine: FakeEngine, idstack: Idstack) -> None:
    engine.has(outputs())
    assert idstack("preview", "--stack", "dev", "--json", "--diff").code == 0
    down = idstack("down", "--stack", "dev", "--json")
    looked = "stack export --stack dev --non-interactive"
    previewed = "preview --json --policy-pack policies --diff --stack dev"
    siblings = "stack ls --json --non-interactive"
    assert engine.calls == [looked, previewed, siblings, looked, "destroy --stack dev"]
    assert json.loads(down.output) == {"stack": "dev", "removed": False}


def test_the_policies_run_on_a_local_stack_that_asks_for_them(
    engine: FakeEngine, idstack: Idstack, ran: list[str], recorded: FakeCluster
) -> None:
    assert (idstack("preview").code, idstack("preview", "--policies").code) == (0, 0)
    plain, asked = (call for call in engine.calls if call.startswith("preview "))
    assert set(asked.split()) - set(plain.split()) == {"--policy-pack", "policies"}


def test_the_local_stack_comes_up_in_order_and_ends_in_a_table(
    engine: FakeEngine, idstack: Idstack, recorded: FakeCluster, ran: list[str], serve_plain: Serve, tmp_path: Path
) -> None:
    engine.has(outputs("hc1-infra"))
    resource = {"type": resource_types.STACK, "outputs": outputs("hc1-infra")}
    event = {"resOutputsEvent": {"metadata": {"type": resource_types.STACK, "new": resource}}}
    engine.logs(["{}", json.dumps(event, separators=(",", ":"))])
    recorded.add_pod("probe-ingress", **running(serve_plain(probe(report()))))

    printed = idstack("up")

    assert printed.code == 0
    assert ran == ["start"]
    configuration = tmp_path / "state/pulumi/configuration.local.yaml"
    assert engine.calls == [
        "stack export --stack local --non-interactive",
        f"up --yes --skip-preview --suppress-outputs --config-file {configuration} --stack local",
    ]
    steps = ["local cloud", "pulumi up", "output of pulumi up", "credential probes", "1 of 1 probes ready"]
    *printed_steps, _, _, line = printed.output.splitlines()[:8]
    assert printed_steps == steps
    assert line.split() == [
        *("ingress", "2027-02-19", "managed-azure-ingress", "/mnt/certs/ingress-hc1-json", "ok"),
        *("200", "Microsoft.Network/virtualNetworks/subnets/read"),
    ]
    assert "\nprovider plugins: emulated\n" in printed.output


@pytest.mark.usefixtures("recorded", "ran")
@pytest.mark.parametrize("is_new", [True, False])
def test_a_refused_first_up_leaves_no_empty_stack(
    engine: FakeEngine, idstack: Idstack, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    monkeypatch.setattr("ops.commands.up.refuse_moves", Mock(side_effect=CommandError("nothing was changed in local")))
    if is_new:
        engine.has_no_stack()
    assert idstack("up").error.endswith("idstack: nothing was changed in local\n")
    assert ("stack rm --yes --preserve-config --stack local" in engine.calls) == is_new


@pytest.mark.parametrize("command", ["up", "preview"])
def test_nothing_starts_without_the_plugins_that_were_asked_for(
    engine: FakeEngine, idstack: Idstack, ran: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "empty"))
    monkeypatch.setenv("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "true")
    monkeypatch.setenv("LOCALCLOUD_PROVIDERS", "azuread")

    printed = idstack(command)

    assert printed.code == 1
    assert printed.error.startswith("idstack: the requested real provider plugins are not available; nothing was")
    assert (ran, engine.calls) == ([], [])


def test_status_of_a_local_stack_names_the_plugins_that_are_real(
    engine: FakeEngine, idstack: Idstack, recorded: FakeCluster, serve_plain: Serve, tmp_path: Path
) -> None:
    engine.has(outputs(notAfter="2999-02-19T16:50:04Z"))
    recorded.add_pod("probe-ingress", **running(serve_plain(probe(report()))))
    choice = tmp_path / "state/pulumi/plugins.json"
    choice.parent.mkdir()
    choice.write_text(json.dumps({"azuread": {"version": "6.11.1", "executable": "/bin/pulumi-resource-azuread"}}))

    assert ", azuread 6.11.1 real, kubernetes " in idstack("status").output
    kinds = {"azure-native": "emulated", "azuread": "real", "kubernetes": "emulated"}
    assert json.loads(idstack("status", "--json").output)["providers"] == kinds


def test_a_local_stack_of_nothing_or_for_hypershift_comes_up_without_probes(
    engine: FakeEngine, idstack: Idstack, recorded: FakeCluster, ran: list[str]
) -> None:
    empty = idstack("up", "--stack", "local-hypershift")
    assert (empty.code, empty.error) == (0, "")
    assert "none: the stack has no hosted cluster; other stacks may name it in their sharedStack\n" in empty.output
    steps = [step.strip().partition("   ")[0] for step in empty.output.partition("Try next:\n")[2].splitlines()]
    assert steps == [
        ".venv/bin/idstack preview --stack local-hypershift",
        ".venv/bin/idstack status --stack local-hypershift",
        ".venv/bin/idstack local env",
        ".venv/bin/idstack down --stack local-hypershift",
    ]

    recorded.selectors.clear()
    engine.has({"clusterSide": "hypershift", **outputs(notAfter="2999-02-19T16:50:04Z")})
    printed = idstack("up")
    assert (printed.code, printed.error, recorded.selectors) == (0, "", [])
    assert "credentials: HyperShift's operators create the pods, so there are no probes" in printed.output
    assert "managed-azure-ingress" in printed.output
    assert "sign-in" not in printed.output


def test_down_of_the_local_stack_ends_the_local_cloud_last(
    engine: FakeEngine, idstack: Idstack, recorded: FakeCluster, ran: list[str], tmp_path: Path
) -> None:
    printed = idstack("down")
    assert printed.code == 0
    asked = [" ".join(call.split()[:2]) for call in engine.calls]
    assert asked == ["stack export", "stack ls", "destroy --yes", "stack rm", "stack ls"]
    assert engine.calls[3] == "stack rm --yes --preserve-config --stack local"
    assert ran == ["start", "stop --remove"]
    assert printed.output.endswith("the local stack is removed completely\n")
    engine.has_stacks("local-hc2", "local-hc1")
    ran.clear()
    last = "the local cloud stays, because it still has other stacks: local-hc1, local-hc2"
    assert (idstack("down").output.splitlines()[-1], ran) == (last, ["start"])
    shutil.rmtree(tmp_path / "state")
    ran.clear()
    assert (idstack("down").code, ran) == (0, []), "without a local stack there is nothing to do"


def test_probe_and_local_hand_over_options_and_exit_code(engine: FakeEngine, idstack: Idstack) -> None:
    probing = idstack("probe", "--credential", "file:/nowhere/ingress-hc1-json")
    assert probing.code == 2
    assert "--proof" in probing.error, "the probe itself misses it"
    assert "issue-msi" in idstack("local", "--help").output
    assert idstack("local", "no-such-command").code == 2
