"""`idstack bootstrap`: a script that prepares Azure and the repository for the pipelines, printed or run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias

import typer

from ops.commands.options import bare
from ops.pipelines import azure_devops, github
from ops.pipelines.stack import PipelineStack, pipeline_stacks
from ops.stack.errors import CommandError

bootstrap = typer.Typer(
    name="bootstrap",
    help="Print the set-up of pipelines: identities with federated credentials and roles, environments, variables.",
    no_args_is_help=True,
)

StacksOption: TypeAlias = Annotated[
    list[str],
    typer.Option("--stack", "-s", help="Name of a stack; repeatable, in the order of deployment.", callback=bare),
]
ReviewersOption: TypeAlias = Annotated[
    list[str], typer.Option("--reviewer", help="Who approves changes of a stack; repeatable.")
]
BackendOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--backend",
        envvar="PULUMI_BACKEND_URL",
        help="Where the states are, azblob://<container>?storage_account=<account>; {stack} is the name of the stack.",
    ),
]
GroupOption: TypeAlias = Annotated[
    str, typer.Option("--resource-group", "-g", help="Resource group of the pipelines' identities, created if missing.")
]
ApplyOption: TypeAlias = Annotated[
    bool, typer.Option("--apply", help="Run the script with the current sign-ins, instead of printing it.")
]
_Write: TypeAlias = Callable[[str, Sequence[PipelineStack], str, Sequence[str]], str]


@bootstrap.command("github")
def github_(
    repository: Annotated[str, typer.Argument(help="The repository, <organization>/<name>.")],
    stack: StacksOption,
    reviewer: ReviewersOption,
    backend: BackendOption = "",
    resource_group: GroupOption = "idstack-pipelines",
    apply: ApplyOption = False,
) -> None:
    """Print a script of `az` and `gh` that prepares a GitHub repository for the workflows; it can be repeated.

    It creates for each stack a deployer and a preview identity with their rights, and the environments, with the
    reviewers (users, or teams as <organization>/<team>) in those that approve. Last comes the variable IDSTACK_STACKS,
    which enables the workflows.
    """
    _bootstrap(github.script, repository, stack, backend, resource_group, reviewer, apply=apply)


@bootstrap.command("azure-devops")
def azure_devops_(
    project: Annotated[str, typer.Argument(help="The project, <organization>/<name>.")],
    stack: StacksOption,
    reviewer: ReviewersOption,
    backend: BackendOption = "",
    resource_group: GroupOption = "idstack-pipelines",
    apply: ApplyOption = False,
) -> None:
    """Print a script of `az` that prepares an Azure DevOps project for the pipeline; it can be repeated.

    It creates for each stack a deployer and a preview identity with their rights and service connections, and the
    environment that asks for approval (by users, as mail addresses) before a change.
    """
    _bootstrap(azure_devops.script, project, stack, backend, resource_group, reviewer, apply=apply)


def _bootstrap(
    write: _Write, where: str, stacks: list[str], backend: str, group: str, reviewers: list[str], *, apply: bool
) -> None:
    if where.count("/") != 1 or not all(where.split("/")):
        raise typer.BadParameter(f"{where!r} is not <organization>/<name>")
    script = write(where, pipeline_stacks(stacks, backend), group, reviewers)
    if not apply:
        print(script, end="")
        return
    if code := subprocess.run(["sh", "-c", script]).returncode:
        raise CommandError(
            f"the script ended with code {code}; the reason is printed above. Correct it, and run it again: it "
            "continues"
        )
