"""`idstack`, the command line of this project."""

from __future__ import annotations

import sys

import typer

from ops.commands.doctor import doctor
from ops.commands.down import down
from ops.commands.export import export
from ops.commands.import_ import import_
from ops.commands.kubeconfig import kubeconfig
from ops.commands.local import local
from ops.commands.options import PASS_ON
from ops.commands.preview import preview
from ops.commands.probe import probe
from ops.commands.rbac import rbac
from ops.commands.recover import recover
from ops.commands.renew import renew
from ops.commands.rotate import rotate
from ops.commands.status import status
from ops.commands.token import token
from ops.commands.up import up
from ops.stack.errors import CommandError

cli = typer.Typer(
    name="idstack",
    help="Azure identities of managed HostedClusters: bring a stack up, check its credentials, take it down.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (up, preview, down, recover, renew, rotate, probe):
    cli.command(context_settings=PASS_ON)(command)
cli.command("import", context_settings=PASS_ON)(import_)
cli.command()(status)
cli.command()(token)
cli.add_typer(export)
cli.command()(kubeconfig)
cli.command()(rbac)
cli.command()(doctor)
cli.command(context_settings={**PASS_ON, "help_option_names": []}, add_help_option=False)(local)


def main() -> None:
    """Run a command; what a person has to fix is printed as one paragraph, exit code 1 (2 for wrong usage)."""
    try:
        cli(prog_name="idstack")
    except CommandError as error:
        print(f"idstack: {error.format_message()}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
