"""`idstack recover` from the outside, with an engine whose answers are given."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from identity.plugin_schema import SCHEMA
from ops.commands import recover
from ops.recovery import settle
from ops.recovery.orphans import Orphan
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.lock import StartedEngine
from ops.stack.streaming import Ended
from tests.unit.ops.conftest import Idstack
from tests.unit.ops.recovery.engine_answers import EngineAnswers

URN = "urn:pulumi:dev::idstack::azure-native:keyvault:Vault::vault-vault"
VAULT = Orphan(
    {"urn": URN, "custom": True, "type": "azure-native:keyvault:Vault", "inputs": {"vaultName": "kv"}}, "/vaults/kv"
)


@pytest.fixture
def orphans(monkeypatch: pytest.MonkeyPatch) -> list[Orphan]:
    """The orphans that the searches find, each in its own."""
    found: list[Orphan] = []

    def find(engine: Engine, report: Callable[[str], None], *, is_lost: bool) -> list[Orphan]:
        report("left alone: one of another stack")
        return [found.pop(0)] if found else []

    monkeypatch.setattr(settle, "find_orphans", find)
    monkeypatch.setattr(recover, "up", lambda context, run: Engine(run.stack).up(context.args))
    return found


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other stack, in this backend or in another, has anything of this one's (`tests/unit/ops/guards`)."""
    for command in ("recover", "up"):
        monkeypatch.setattr(f"ops.commands.{command}.refuse_duplicates", lambda *_: None)
    monkeypatch.setattr("ops.recovery.settle.refuse_lost", lambda *_: None)


def lock_of(pid: int, host: str = "") -> str:
    return (
        "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the "
        "lock file with `pulumi cancel`.\n  file:///locks/1.json: created by "
        f"root@{host or socket.gethostname()} (pid {pid}) at 2026-11-21T17:13:57Z\n"
    )


@pytest.fixture
def living(tmp_path: Path) -> Iterator[int]:
    """The id of an engine that works on something."""
    executable = tmp_path / "pulumi"
    shutil.copy("/bin/sleep", executable)
    with subprocess.Popen([executable, "600"]) as process:
        yield process.pid
        process.kill()


DEAD = 2**22 + 1


def test_with_nothing_to_find_the_state_is_refreshed_and_brought_up(
    answers: EngineAnswers, orphans: list[Orphan], idstack: Idstack
) -> None:
    done = idstack("recover", "--stack", "dev", "--yes")
    assert done.code == 0
    assert answers.asked == ["refresh", "stack export", "up"]
    assert answers.calls[0] == "refresh --yes --non-interactive --skip-preview --clear-pending-creates --stack dev"
    assert answers.calls[-1] == "up --yes --stack dev"


def test_what_a_replacement_deleted_first_is_refreshed_without_its_mark(
    answers: EngineAnswers, orphans: list[Orphan], idstack: Idstack
) -> None:
    marked = {"urn": URN, "type": "azure-native:keyvault:Vault", "id": "/vaults/kv", "pendingReplacement": True}
    state = {"version": 3, "deployment": {"resources": [marked]}}
    answers.to("stack export", (0, json.dumps(state), ""))
    assert idstack("recover", "--stack", "dev", "--yes").code == 0
    assert answers.asked == ["refresh", "stack export", "stack import", "refresh", "stack export", "up"]
    [entered] = answers.imported["deployment"]["resources"]
    assert entered == {key: value for key, value in marked.items() if key != "pendingReplacement"}


def test_a_search_follows_for_what_depends_on_what_was_entered(
    answers: EngineAnswers, orphans: list[Orphan], idstack: Idstack
) -> None:
    orphans += [VAULT, Orphan({**VAULT.resource, "urn": f"{URN}-role"}, "/roles/1")]
    done = idstack("recover", "--stack", "dev", "--yes")
    assert "vault-vault: /vaults/kv\n  vault-vault-role: /roles/1\n2 entered into the state" in done.output
    assert done.output.count("left alone") == 1
    [entered] = answers.imported["deployment"]["resources"]
    assert (entered["urn"], entered["id"], entered["refreshBeforeUpdate"]) == (f"{URN}-role", "/roles/1", True)
    assert [answers.asked.count(command) for command in ("stack import", "up")] == [2, 1]
    orphans.append(VAULT)
    done = idstack("recover", "--stack", "dev", "--no-up", "--yes", "--json")
    assert json.loads(done.output) == {"stack": "dev", "entered": {"vault-vault": "/vaults/kv"}}
    assert answers.asked[-1] == "stack import"


def test_without_a_word_nothing_is_entered_into_a_stack_on_azure(
    answers: EngineAnswers, orphans: list[Orphan], idstack: Idstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    orphans.append(VAULT)
    with Path(os.devnull).open() as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        done = idstack("recover", "--stack", "dev")
    assert done.code == 1
    assert "run the command again with --yes (`.venv/bin/idstack recover --stack dev --yes`)" in done.error
    assert not {"stack import", "up"} & set(answers.asked)


def test_a_local_stack_that_does_not_exist_is_not_made_beside_others(
    answers: EngineAnswers, idstack: Idstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.commands.local.start_local_cloud", lambda _: None)
    Engine("local").paths.create()
    answers.to("stack export", (255, "", "error: no stack named 'local' found\n"))
    answers.to("stack", (0, '[{"name": "local-b"}]', ""))
    done = idstack("recover", "--stack", "local")
    reason = "the local cloud has no stack local: `.venv/bin/idstack up --stack local` creates it. Its stacks: local-b"
    assert (done.code, reason in done.error) == (1, True), done.error
    assert set(answers.asked) == {"stack export", "stack ls"}
    answers.to("stack", (0, "[]", ""))
    idstack("recover", "--stack", "local")
    assert "stack select" in answers.asked, "an `up` that was killed had not made it yet"


def test_a_stack_that_a_backend_has_lost_is_claimed_by_its_owner_id_alone(
    answers: EngineAnswers, orphans: list[Orphan], idstack: Idstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers.to("stack", (0, "[]", ""))
    answers.to("refresh", *[(255, "", "error: no stack named 'dev' found\n")] * 2, (0, "", ""))
    assert "`.venv/bin/idstack init dev` creates a new one" in idstack("recover", "--stack", "dev").error

    def refuse(*_: object) -> None:
        raise CommandError("recover with --owner 1")

    monkeypatch.setattr("ops.recovery.settle.refuse_lost", refuse)
    assert "recover with --owner 1" in idstack("recover", "--stack", "dev").error
    assert answers.asked == ["refresh", "refresh"]
    providers = [False, True]
    monkeypatch.setattr("ops.recovery.settle.refuse_lost", lambda *_: None)
    monkeypatch.setattr("ops.recovery.settle.take_owner_id", lambda *_: None)
    monkeypatch.setattr(settle, "create_providers", lambda *_: providers.pop())
    done = idstack("recover", "--stack", "dev", "--owner", "1")
    assert (done.code, providers) == (0, []), "nobody is asked about providers"
    assert answers.asked[2:5] == ["stack ls", "stack init", "refresh"]


@pytest.fixture
def torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state of `dev` in a backend of files, without a copy and with nothing in it."""
    file = tmp_path / "backend/.pulumi/stacks/idstack/dev.json"
    file.parent.mkdir(parents=True)
    file.touch()
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"{(tmp_path / 'backend').as_uri()}?metadata=skip")
    return file


def test_a_stack_that_was_never_written_whole_is_made_and_brought_up_unless_a_copy_is_torn_too(
    answers: EngineAnswers, orphans: list[Orphan], idstack: Idstack, torn: Path
) -> None:
    answers.to("stack", (0, "[]", ""))
    torn.with_name("dev.json.bak").write_text('{"version"')
    done = idstack("recover", "--stack", "dev", "--yes")
    assert done.code == 1
    assert "`.venv/bin/idstack sweep --stack dev` lists the applications" in " ".join(done.error.split())
    made = ["stack ls", "stack init"]
    assert answers.asked == made
    torn.with_name("dev.json.bak").unlink()
    torn.touch()
    done = idstack("recover", "--stack", "dev", "--yes")
    assert done.code == 0, done.error
    assert f"is empty now; the file is kept as {torn}.damaged" in done.output.replace("\n", "")
    assert answers.asked[2:] == [*made, "refresh", "stack export", "up"]


@pytest.mark.parametrize("command", ["up", "status", "recover"])
def test_a_state_that_is_cut_short_while_the_stack_is_made_ends_in_no_trace(
    answers: EngineAnswers, orphans: list[Orphan], idstack: Idstack, command: str
) -> None:
    answers.to("stack export", (0, '{"version": 3, "deployment": null}', ""))
    answers.to("stack", (0, "{}", ""))
    answers.to("whoami", (0, '{"url": "file:///states"}', ""))
    done = idstack(command, "--stack", "dev", *(["--yes"] if command != "status" else []))
    assert "Traceback" not in done.error
    said = "no `up` of the stack dev has completed" in done.error
    assert (done.code, said) == ((0, False) if command == "recover" else (1, True)), done.error


@pytest.mark.parametrize("command", ["up", "status", "doctor", "backup"])
def test_every_command_names_recover_for_a_new_stack_that_is_torn(
    answers: EngineAnswers, idstack: Idstack, torn: Path, command: str
) -> None:
    error = (255, "", "error: failed to load checkpoint: place 1: unexpected end of JSON input")
    answers.to("stack", error)
    for operation in ("stack export", "up", "refresh", "preview", "whoami"):
        answers.to(operation, error)
    done = idstack(command, "--stack", "dev")
    assert done.code != 0
    said = " ".join(f"{done.output} {done.error}".split())
    assert "`.venv/bin/idstack recover --stack dev`" in said, said


def _of(application: str, token: str) -> dict[str, Any]:
    return {
        "urn": f"urn:pulumi:dev::idstack::{token}::{application}",
        "type": token,
        "parent": f"urn:pulumi:dev::idstack::idstack:azure:EntraApplication::{application}",
        "inputs": {"schema": SCHEMA, "applicationId": f"/applications/{application}"},
    }


def _credential(application: str) -> list[dict[str, Any]]:
    """What the state has of an application."""
    kinds = ("application:Application", "applicationCertificate:ApplicationCertificate")
    own = ("RenewalSchedule", "Certificate", "SignInGate")
    tokens = (*(f"azuread:index/{kind}" for kind in kinds), *(f"idstack:index:{kind}" for kind in own))
    return [_of(application, token) for token in tokens]


def _secret(application: str) -> dict[str, Any]:
    """The secret with the application's credential, which belongs to another component."""
    component = f"urn:pulumi:dev::idstack::idstack:azure:CredentialSecret::{application}"
    return {**_of(application, "idstack:index:CredentialSecret"), "parent": component}


@pytest.fixture
def only_one_left(answers: EngineAnswers, monkeypatch: pytest.MonkeyPatch) -> EngineAnswers:
    """Of two applications the second was deleted."""

    left: dict[str, object] = {"/applications/one": {}}
    monkeypatch.setattr(settle, "deployer", lambda _: nullcontext(SimpleNamespace(directory_object=left.get)))
    resources = [*_credential("one"), *_credential("two"), _secret("two")]
    answers.to("stack export", (0, json.dumps({"deployment": {"resources": resources}}), ""))
    return answers


def test_what_a_deleted_application_had_leaves_the_state_but_its_certificates(
    only_one_left: EngineAnswers, orphans: list[Orphan], idstack: Idstack
) -> None:
    only_one_left.to("refresh", (255, "", "error: refresh failed"), (0, "", ""))
    done = idstack("recover", "--stack", "dev", "--yes")
    assert done.code == 0, done.error
    assert "removing what deleted applications had from the state, but for their certificates:\n  two\n" in done.output
    kept = [resource["urn"] for resource in only_one_left.imported["deployment"]["resources"]]
    stay = ("azuread:index/application:Application", "idstack:index:Certificate")
    left = (*_credential("one"), *(_of("two", token) for token in stay), _secret("two"))
    assert kept == [resource["urn"] for resource in left], "the vault has secret and certificate still"
    assert only_one_left.asked.count("refresh") == 2


def test_a_refresh_that_fails_for_another_reason_or_is_interrupted_removes_nothing(
    only_one_left: EngineAnswers, idstack: Idstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_one_left.to("stack export", (0, json.dumps({"deployment": {"resources": _credential("one")}}), ""))
    only_one_left.to("refresh", (255, "", "error: refresh failed"))
    done = idstack("recover", "--stack", "dev", "--yes")
    assert (done.code, "`pulumi refresh` ended with code 255" in done.error) == (1, True)
    monkeypatch.setattr("ops.stack.pulumi_runs.run_streaming", lambda *_, **__: Ended(255, "", "SIGTERM"))
    done = idstack("recover", "--stack", "dev", "--yes")
    assert done.error.startswith("idstack: interrupted by SIGTERM: `pulumi refresh` has finished its operations")
    assert "stack import" not in only_one_left.asked


def test_another_cluster_of_the_same_name_is_asked_at_its_own_address(
    answers: EngineAnswers, orphans: list[Orphan], idstack: Idstack
) -> None:
    provider = {"urn": "urn:pulumi:dev::idstack::pulumi:providers:kubernetes::kubernetes", "id": "1"}
    resources = [{**provider, "type": "pulumi:providers:kubernetes", "inputs": {}}]
    answers.to("stack export", (0, json.dumps({"deployment": {"resources": resources}}), ""))
    answers.to("refresh", (255, "", "error: configured Kubernetes cluster is unreachable"), (0, "", ""))
    done = idstack("recover", "--stack", "dev", "--yes")
    assert done.code == 0, done.error
    assert "reading the address of the management cluster from Azure" in done.output
    [alone, _] = [call for call in answers.calls if call.startswith("up ")]
    assert alone.endswith(f"--yes --skip-preview --target {provider['urn']} --stack dev")
    steps = [step for step in answers.asked if step in ("refresh", "up")]
    assert steps == ["refresh", "up", "refresh", "up"]


def test_the_lock_of_a_dead_owner_is_taken_away(
    answers: EngineAnswers, orphans: list[Orphan], idstack: Idstack
) -> None:
    seen = ("2026-11-21T17:13:50Z", "2026-11-21T17:14:00Z", socket.gethostname(), "", "", "")
    Engine("dev").engines.write(StartedEngine("dev", DEAD, "1", *seen))
    answers.to("refresh", (255, "", lock_of(DEAD)), (0, "", ""))
    done = idstack("recover", "--stack", "dev", "--yes")
    assert done.code == 0
    assert answers.asked == ["refresh", "cancel", "refresh", "stack export", "up"]
    assert "cancel dev --yes --non-interactive" in answers.calls


@pytest.mark.parametrize("host", ["", "runner-7"], ids=["another machine of this name", "elsewhere"])
def test_the_lock_of_another_machine_stays(answers: EngineAnswers, idstack: Idstack, host: str) -> None:
    answers.to("refresh", (255, "", lock_of(DEAD, host)))
    done = idstack("recover", "--stack", "dev", "--yes")
    assert (done.code, answers.asked) == (1, ["refresh"])
    assert "`.venv/bin/idstack recover --stack dev --unlock`" in done.error
    assert ("which idstack on this machine has no record of" in done.error) == (not host)


def test_a_lock_of_a_job_that_is_gone_is_taken_away_on_request(
    answers: EngineAnswers, orphans: list[Orphan], idstack: Idstack
) -> None:
    answers.to("refresh", (255, "", lock_of(DEAD, "runner-7")), (0, "", ""))
    done = idstack("recover", "--stack", "dev", "--unlock", "--no-up")
    assert done.code == 0
    assert answers.asked == ["refresh", "cancel", "refresh", "stack export"]


@pytest.mark.parametrize("option", ["--yes", "--unlock"])
def test_no_request_takes_away_the_lock_of_an_owner_that_runs(
    answers: EngineAnswers, living: int, idstack: Idstack, option: str
) -> None:
    answers.to("refresh", (255, "", lock_of(living)))
    done = idstack("recover", "--stack", "dev", option)
    assert done.code == 1
    assert f"(pid {living}, since 2026-11-21T17:13:57Z), which still runs; wait until it ends" in done.error
    assert answers.asked == ["refresh"]


@pytest.mark.parametrize("command", ["up", "down"])
def test_a_command_that_finds_the_stack_locked_names_the_owner(
    answers: EngineAnswers, idstack: Idstack, living: int, command: str
) -> None:
    answers.to("stack", (0, "[]", ""))
    for engines_own in ("up", "destroy"):
        answers.to(engines_own, (255, "", lock_of(living)))
    done = idstack(command, "--stack", "dev", "--yes")
    last = done.error.splitlines()[-1]
    assert done.code == 1
    assert last.startswith(f"idstack: the stack dev is locked by root@{socket.gethostname()} (pid {living}, since")


def test_the_errors_of_a_preview_are_reported(answers: EngineAnswers) -> None:
    complaint = {"message": "error: The stack's configuration has 1 problem\n", "severity": "error"}
    warning = {"message": "warning: old\n", "severity": "warning"}
    answers.to("preview", (255, json.dumps({"steps": [], "diagnostics": [warning, complaint]}), ""))
    with pytest.raises(CommandError, match=r"^`pulumi preview`: error: The stack's configuration has 1 problem$"):
        Engine("dev").planned()
    answers.to("preview", (255, "", "error: no stack named 'dev' found\n"))
    with pytest.raises(CommandError, match="the backend that you are logged in to has no stack dev"):
        Engine("dev").planned()
