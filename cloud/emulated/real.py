"""Starts a real provider plugin for local stacks, with the local cloud behind Azure's public names.

`python -m emulated.real run <executable> [argument ...]` becomes that plugin, and
`python -m emulated.real version <executable>` prints its version.

The emulated plugins refuse every tenant but the local cloud's. A real one would serve any, also in `refresh` and
`destroy`, which do not run the program. So whatever it asks for by name goes to the local cloud's proxy, which reaches
no other host, and the authority that it trusts has signed for no other. Go asks no proxy for addresses of this machine:
of the clusters there, the settings accept the local cloud's alone (`identity/settings/rules/stack.py`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2_grpc

from localcloud.core.certificates import as_pkcs12, parse
from localcloud.core.clouds import LOCAL_ENVIRONMENT_VARIABLE, LocalEnvironment, network
from localcloud.core.files import write_private

# Signs in with PKCS#12 alone; azure-native reads PEM as well, which is what a local stack's variables name already.
_TAKES_PKCS12: Final = "pulumi-resource-azuread"
_OF_A_CLUSTER: Final = "pulumi-resource-kubernetes"
_PORT: Final = re.compile(rb"\d+\s*")
_ANSWERS_WITHIN: Final = 30.0  # seconds


class NotAPluginError(RuntimeError):
    """The executable does not answer as a provider plugin does."""


def variables(executable: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the plugin, from the engine's, which names the local cloud's record.

    Raises OSError or ValueError without a local cloud.
    """
    environment = LocalEnvironment.from_file(Path(environ[LOCAL_ENVIRONMENT_VARIABLE]))
    variables = {**environ, **network(environment)}
    if executable.name == _TAKES_PKCS12:
        pem = Path(environment.deployer_certificate)
        file = pem.with_suffix(".pfx")
        write_private(file, as_pkcs12(parse(pem.read_bytes())))
        variables |= {"ARM_CLIENT_CERTIFICATE_PATH": str(file), "ARM_CLIENT_CERTIFICATE_PASSWORD": ""}
    if executable.name == _OF_A_CLUSTER:
        # If a provider names none, it must not use the user's own cluster.
        variables["KUBECONFIG"] = environment.kubeconfig
    return variables


def version(executable: Path) -> str:
    """The version that a plugin states, without a leading "v"; raises OSError, NotAPluginError."""
    # Without the engine's address it waits for an engine that attaches itself (`resource/provider/main.go`).
    with subprocess.Popen([executable], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        deadline = threading.Timer(_ANSWERS_WITHIN, process.kill)
        deadline.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if _PORT.fullmatch(line) is None:
                raise NotAPluginError("it prints no port, as a provider plugin does")
            with grpc.insecure_channel(f"127.0.0.1:{int(line)}") as channel:
                plugin = provider_pb2_grpc.ResourceProviderStub(channel)
                stated: plugin_pb2.PluginInfo = plugin.GetPluginInfo(empty_pb2.Empty(), timeout=_ANSWERS_WITHIN)
        except grpc.RpcError as error:
            raise NotAPluginError(f"it does not state its version ({error.code().name})") from None
        finally:
            deadline.cancel()
            process.kill()
    return stated.version.removeprefix("v")


def main(arguments: Sequence[str]) -> None:
    """Run the command line; an error is printed, with exit code 1."""
    match arguments:
        case ["version", executable]:
            try:
                print(version(Path(executable)))
            except (OSError, NotAPluginError) as error:
                sys.exit(str(error))
        case ["run", executable, *rest]:
            try:
                environ = variables(Path(executable), os.environ)
            except (KeyError, OSError, ValueError) as error:
                sys.exit(f"{executable} was not started, for it would reach Azure itself: no local cloud, {error}")
            # The engine ends the process that it has started.
            os.execve(executable, [executable, *rest], environ)  # noqa: S606  # no shell, on purpose
        case _:
            sys.exit("usage: python -m emulated.real run|version <executable> [argument ...]")


if __name__ == "__main__":
    main(sys.argv[1:])
