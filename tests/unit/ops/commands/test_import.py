"""`idstack import` from the outside: one resource without a word for its command, and the adoption of a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from identity.azure.client import AzureClient
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from tests.unit.ops import answers
from tests.unit.ops.conftest import FakeEngine, Idstack

TYPE = "azure-native:keyvault:Vault"
PROVIDER = "urn:pulumi:dev::idstack::pulumi:providers:azure-native::azure"
STACK = "urn:pulumi:dev::idstack::pulumi:pulumi:Stack::idstack-dev"
_IMPORT = "import --generate-code=false --suppress-outputs"


@pytest.mark.parametrize("words", [(TYPE, "vault", "/id", "--stack", "dev"), ("--stack", "dev", TYPE, "vault", "/id")])
def test_one_resource_is_imported_without_a_word_for_the_command_and_a_file_with_one(
    engine: FakeEngine, idstack: Idstack, tmp_path: Path, words: tuple[str, ...]
) -> None:
    engine.has_resources({"urn": PROVIDER, "type": "pulumi:providers:azure-native", "id": "x"})
    engine.configures(tenantId="t")
    file = tmp_path / "import.json"
    file.write_text(json.dumps({"nameTable": {"azure": PROVIDER}, "resources": []}))

    commands = ((*words, "--parent", "parent=urn:p"), ("file", str(file), "--stack", "dev"))
    printed = [idstack("import", *command) for command in commands]

    # An import protects, unless it is told not to.
    for what in (f"{TYPE} vault /id --parent parent=urn:p", f"--file {file}"):
        assert f"{_IMPORT} {what} --stack dev" in engine.calls, printed


def test_what_another_stack_has_is_not_adopted(engine: FakeEngine, idstack: Idstack, tmp_path: Path) -> None:
    engine.configures(tenantId="t")
    engine.has_stacks("dev", "prod")
    engine.has_resources({"urn": "urn:v", "type": TYPE, "id": "/ID"})
    file = tmp_path / "import.json"
    file.write_text(json.dumps({"nameTable": {}, "resources": [{"type": TYPE, "name": "vault", "id": "/id"}]}))

    one = idstack("import", TYPE, "vault", "/id", "--stack", "dev")
    several = idstack("import", "file", str(file), "--stack", "dev")

    assert (one.code, one.error) == (1, "idstack: /id was not adopted: the stack prod has it\n")
    assert (several.code, several.error) == (
        1,
        "idstack: nothing was adopted, because these may not be this stack's:\n- /id: the stack prod has it\n",
    )
    assert not any(call.startswith("import") for call in engine.calls)


@pytest.mark.parametrize(
    ("type_token", "is_kept"), [(TYPE, False), ("azure-native:authorization:RoleAssignment", True)]
)
def test_what_the_next_run_would_replace_is_not_adopted(
    engine: FakeEngine, idstack: Idstack, monkeypatch: pytest.MonkeyPatch, type_token: str, is_kept: bool
) -> None:
    """But the role of an identity that is gone: nothing is lost with it."""
    engine.configures(tenantId="t")
    engine.has_resources({"urn": "urn:pulumi:dev::idstack::a:b:C::known", "type": "a:b:C"})
    named = {"op": "replace", "urn": f"urn:pulumi:dev::idstack::{type_token}::thing", "replaceReasons": ["a.b", "c"]}
    known = {"op": "replace", "urn": "urn:pulumi:dev::idstack::a:b:C::known"}
    monkeypatch.setattr(Engine, "planned", lambda self: {"steps": [known, named]})

    done = idstack("import", type_token, "thing", "/id", "--stack", "dev")

    assert done.code == (0 if is_kept else 1), done.error
    assert ("stack import --stack dev --non-interactive" in engine.calls) != is_kept
    assert ("\n- thing: a.b, c\nLet Pulumi.dev.yaml say what exists" in done.error) != is_kept


def test_nothing_is_adopted_if_nobody_knows_what_the_next_run_does(
    engine: FakeEngine, idstack: Idstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Engine) -> None:
        raise CommandError("`pulumi preview`: no access")

    engine.configures(tenantId="t")
    monkeypatch.setattr(Engine, "planned", fail)

    done = idstack("import", TYPE, "vault", "/id", "--stack", "dev")

    assert done.error.endswith(
        "nothing was adopted, because it is unknown what `up` would do with it: `pulumi preview`: no access\n"
    )
    assert "stack import --stack dev --non-interactive" in engine.calls


def test_a_type_alone_is_a_wrong_usage_and_the_help_lists_the_ways(engine: FakeEngine, idstack: Idstack) -> None:
    printed, shown = idstack("import", TYPE), idstack("import", "--help")

    assert (printed.code, shown.code, engine.calls) == (2, 0, [])
    assert "Missing argument 'NAME'" in printed.error
    assert not [word for word in ("resource", "scripts", "file", "TYPE NAME ID") if word not in shown.output]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"nameTable": []}', '{"resources": []}', '{"nameTable": {}, "resources": [{"id": "x"}]}']
)
def test_another_file_is_no_import_file(engine: FakeEngine, idstack: Idstack, tmp_path: Path, text: str) -> None:
    file = tmp_path / "import.json"
    file.write_text(text)

    printed = idstack("import", "file", str(file), "--stack", "dev")
    gone = idstack("import", "scripts", "--cluster", "hc1", "--cp", "/gone", "--dp", "/gone", "--stack", "dev")

    ways = "`.venv/bin/idstack import scripts` or `.venv/bin/idstack import iam` writes one"
    assert (printed.code, f"{file} is not an import file; {ways}" in printed.error) == (1, True)
    told = "idstack: /gone cannot be read (no such file or directory); use the file that the script wrote\n"
    assert (gone.code, gone.error, engine.calls) == (1, told, [])


@pytest.mark.parametrize(("wanted", "is_adopted"), [("p-1", True), ("p-2", False)])
def test_a_living_principals_role_is_adopted_if_the_program_wants_it_for_him(
    engine: FakeEngine, idstack: Idstack, monkeypatch: pytest.MonkeyPatch, wanted: str, is_adopted: bool
) -> None:
    """Such as the add-on's, which nothing in the state has before."""
    monkeypatch.setattr(AzureClient, "resource", lambda *_: answers.role_assignment("/g/r", "P-1", "/roles/reader"))
    monkeypatch.setattr(AzureClient, "directory_object", lambda *_: {"displayName": "add-on"})
    inputs = {"principalId": wanted}
    plan = {"steps": [{"op": "create", "urn": "urn:x::roles-vault", "newState": {"inputs": inputs}}]}
    monkeypatch.setattr(Engine, "planned", lambda self: plan)
    engine.configures(tenantId="t")
    id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Authorization/roleAssignments/r"

    done = idstack("import", "azure-native:authorization:RoleAssignment", "roles-vault", id, "--stack", "dev")

    assert any(call.startswith("import") for call in engine.calls) == is_adopted
    assert (f"{id} was not adopted: it is a role of add-on (p-1), which exists" in done.error) != is_adopted
