"""An `up` that is stopped by what exists already, or by a deleted thing's name: the lines it prints lead out of it."""

from __future__ import annotations

from pathlib import Path

from tests.harness import LocalStack, running_stack


def _commands(printed: str) -> list[str]:
    return [line.strip() for line in printed.splitlines() if line.startswith("    .venv/bin/idstack ")]


def test_a_role_assignment_that_exists_stops_up_with_the_line_that_adopts_it(small: LocalStack) -> None:
    # As HyperShift's CLI makes it: the same name, role, scope and principal.
    small.pulumi("state", "delete", small.resource("hc1-data-plane-disk-roles-managed")["urn"], "--yes")

    stopped = small.idstack("up", check=False)

    assert stopped.returncode == 1
    assert "cannot create already existing resource" in stopped.stdout
    assert (
        "These exist already, and the stack local does not know them:\n  hc1-data-plane-disk-roles-managed\n"
        in stopped.stderr
    )
    [command] = _commands(stopped.stderr)
    small.run("sh", "-c", command)
    assert small.preview() == {}


def test_a_vault_that_a_destroyed_stack_left_soft_deleted_comes_back_by_the_printed_lines(tmp_path: Path) -> None:
    with running_stack(tmp_path) as stack, stack.configured(hostedClusters=[]):
        stack.up()
        stack.pulumi("destroy", "--yes", "--skip-preview")

        stopped = stack.idstack("up", check=False)

        assert stopped.returncode == 1
        assert "A vault with the same name already exists in deleted state" in stopped.stdout
        recover, adopt = _commands(stopped.stderr)
        assert recover.endswith("/providers/Microsoft.KeyVault/vaults/kv-idstack-local")
        for command in (recover, adopt):
            stack.run("sh", "-c", command)
        stack.up()
        assert stack.preview() == {}
