"""Secret marks of outputs, as the engine and Pulumi's Terraform bridge set them (`plugin.AnnotateSecrets`)."""

from __future__ import annotations

from plugin import Props, Secret, Value


def mark_secrets(state: Props, inputs: Props) -> Props:
    """The outputs, each secret where the input at the same path is."""
    return {name: _marked(value, inputs[name]) if name in inputs else value for name, value in state.items()}


def _marked(value: Value, origin: Value) -> Value:
    if isinstance(origin, Secret):
        return value if isinstance(value, Secret) else Secret(value)
    if isinstance(value, dict) and isinstance(origin, dict):
        return mark_secrets(value, origin)
    if isinstance(value, list) and isinstance(origin, list):
        return [_marked(item, origin[index]) if index < len(origin) else item for index, item in enumerate(value)]
    return value
