"""Settings laid over one another: which value a stack gets, and where the fleet file spells it.

Mappings are merged key by key; any other value takes the place of the one below it, and null removes it. In texts the
names in braces are filled in: `{cluster}` and `{environment}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from identity.settings.schema.problems import Place, enumerate_words
from ops.fleet.problems import FleetReport

# `${x}` is a shell's, not ours.
_NAME: Final = re.compile(r"(?<!\$)\{([a-zA-Z][a-zA-Z0-9]*)\}")


@dataclass
class Layered:
    """One mapping built of layers; `sources` has the fleet file's place of each value and mapping in it."""

    names: Mapping[str, str]
    report: FleetReport
    values: dict[str, Any] = field(default_factory=dict)
    sources: dict[Place, Place] = field(default_factory=dict)

    def lay(self, layer: Mapping[str, Any], source: Place, at: Place = ()) -> None:
        """Lay a mapping over what is at `at`; `source` is its place in the fleet file."""
        holder: Any = self.values
        for step in at:
            holder = holder[step]
        self.sources.setdefault(at, source)
        self._merge(holder, layer, at, source)

    def source_of(self, place: Place) -> Place:
        """Where the fleet file spells the value at `place`, or would spell it if it is missing."""
        for end in range(len(place), -1, -1):
            if (source := self.sources.get(place[:end])) is not None:
                return *source, *place[end:]
        return place

    def _merge(self, below: dict[str, Any], above: Mapping[str, Any], at: Place, source: Place) -> None:
        for key, value in above.items():
            place, spelled = (*at, key), (*source, key)
            if isinstance(value, Mapping) and isinstance(below.get(key), dict):
                self._merge(below[key], value, place, spelled)
                continue
            self._forget(place)
            if value is None:
                below.pop(key, None)
                continue
            below[key] = self._filled(value, place, spelled)

    def _filled(self, value: Any, place: Place, source: Place) -> Any:
        """A copy of a value with its names filled in, its source noted."""
        self.sources[place] = source
        if isinstance(value, Mapping):
            return {
                key: self._filled(item, (*place, key), (*source, key))
                for key, item in value.items()
                if item is not None
            }
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [self._filled(item, (*place, i), (*source, i)) for i, item in enumerate(value)]
        return _NAME.sub(lambda name: self._name(name, value, source), value) if isinstance(value, str) else value

    def _name(self, match: re.Match[str], text: str, source: Place) -> str:
        name = match[1]
        if name in self.names:
            return self.names[name]
        known = enumerate_words((f"{{{known}}}" for known in self.names), last="or")
        if all(problem.place != source for problem in self.report.problems):
            self.report.refuse(
                source, text, rule="unknown-name", accepted=f"of names in braces here {known}", fix="correct the name"
            )
        return match[0]

    def _forget(self, place: Place) -> None:
        for outdated in [source for source in self.sources if source[: len(place)] == place]:
            del self.sources[outdated]
