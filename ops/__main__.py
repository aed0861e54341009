"""`idstack`, the command line of this project."""

from __future__ import annotations

import sys

import typer

from ops.commands.adopt import adopt
from ops.commands.doctor import doctor
from ops.commands.down import down
from ops.commands.export import export
from ops.commands.handover import local, probe
from ops.commands.kubeconfig import kubeconfig
from ops.commands.preview import preview
from ops.commands.rbac import rbac
from ops.commands.recover import recover
from ops.commands.renew import renew
from ops.commands.rotate import rotate
from ops.commands.status import status
from ops.commands.token import token
from ops.commands.up import up
from ops.options import PASS_ON
from ops.trouble import Trouble

cli = typer.Typer(
    name="idstack",
    help="Azure identities of managed HostedClusters: bring a stack up, see how its credentials are, take it down.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (up, preview, down, recover, renew, rotate, probe):
    cli.command(context_settings=PASS_ON)(command)
cli.command("import", context_settings=PASS_ON)(adopt)
cli.command()(status)
cli.command()(token)
cli.add_typer(export)
cli.command()(kubeconfig)
cli.command()(rbac)
cli.command()(doctor)
cli.command(context_settings={**PASS_ON, "help_option_names": []}, add_help_option=False)(local)


def main() -> None:
    """Run a command; what a person has to mend is said in one paragraph, exit code 1 (2 for wrong usage)."""
    try:
        cli(prog_name="idstack")
    except Trouble as trouble:
        print(f"idstack: {trouble}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
