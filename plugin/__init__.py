"""Resource plugins for the Pulumi engine in Python: the `ResourceProvider` protocol without its wire format.

A plugin subclasses `Provider`, hands out one `Resource` per type token and calls `serve`. The SDK's own
`pulumi.provider.experimental` server was set aside because it appends a stack trace to every error a user reads and
cannot marshal unknown values (docs/decisions/0002-own-plugin-runtime.md).
"""

from plugin.provider import (
    Checked,
    CheckFailure,
    Created,
    Diff,
    InitializationError,
    PluginError,
    PropertyChange,
    Provider,
    ReadResult,
    Resource,
    diff_properties,
)
from plugin.server import serve
from plugin.servicer import PluginInterruptedError, interruptible, log_info, pause
from plugin.values import UNKNOWN, Props, Secret, Value, contains_secret, contains_unknown, unwrap

__all__ = [
    "UNKNOWN",
    "CheckFailure",
    "Checked",
    "Created",
    "Diff",
    "InitializationError",
    "PluginError",
    "PluginInterruptedError",
    "PropertyChange",
    "Props",
    "Provider",
    "ReadResult",
    "Resource",
    "Secret",
    "Value",
    "contains_secret",
    "contains_unknown",
    "diff_properties",
    "interruptible",
    "log_info",
    "pause",
    "serve",
    "unwrap",
]
