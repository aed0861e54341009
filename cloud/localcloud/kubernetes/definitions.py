"""The custom resource definitions of the local cluster: the source of custom kinds for both API servers.

kube-apiserver gets the files as they are. The built-in API takes kinds and schemas out of them and knows of a schema
what `schemas.py` knows: of the rules in CEL (`x-kubernetes-validations`) it knows none.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

from localcloud.core import yaml_text

Definition = dict[str, Any]

_FOLDER: Final = Path(__file__).with_name("definitions")


@cache
def definitions() -> tuple[Definition, ...]:
    """Every CustomResourceDefinition, in the order of the files' names. Each serves one version."""
    return tuple(yaml_text.load(file.read_bytes()) for file in sorted(_FOLDER.glob("*.yaml")))


def version(definition: Definition) -> dict[str, Any]:
    """The one version that is served."""
    [served] = definition["spec"]["versions"]
    return dict(served)
