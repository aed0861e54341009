"""An `up` that is stopped by what exists already, or by a deleted thing's name: the lines it prints lead out of it."""

from __future__ import annotations

from tests.harness import LocalStack

# The vault, then all that is in it, then nothing.
_ROUNDS = 3


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


def test_what_a_destroyed_stack_leaves_soft_deleted_comes_back_by_the_printed_lines(small: LocalStack) -> None:
    small.pulumi("destroy", "--yes", "--skip-preview")

    for _ in range(_ROUNDS):
        done = small.idstack("up", "--continue-on-error", check=False)
        if done.returncode == 0:
            break
        commands = _commands(done.stderr)
        assert commands, done.stdout + done.stderr
        assert len(commands) % 2 == 0
        assert all(" local recover " in each for each in commands[::2])
        assert all(" import " in each for each in commands[1::2])
        for command in commands:
            small.run("sh", "-c", command)

    assert done.returncode == 0, "every identity signs in again"
    assert small.preview() == {}
