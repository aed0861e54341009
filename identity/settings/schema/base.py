"""The base of every model of the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from identity.settings.schema.invalid import INVALID


@dataclass(frozen=True)
class FilledIn:
    """Metadata of a key whose default is not a constant: `default` describes it, for the reference."""

    default: str


class Model(BaseModel):
    """Frozen, camelCase in the stack file, no unknown keys; `INVALID` may replace every value."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, hide_input_in_errors=True)

    @model_validator(mode="wrap")
    @classmethod
    def _let_invalid_models_pass(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Any:
        return value if value is INVALID else handler(value)

    @field_validator("*", mode="wrap")
    @classmethod
    def _let_invalid_values_pass(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        return value if value is INVALID else handler(value)
