"""What every model of the configuration has in common."""

from __future__ import annotations

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

from identity.settings.refused import REFUSED


class Model(BaseModel):
    """Frozen, camelCase in the stack file, no unknown keys; `REFUSED` passes wherever a value stood."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, hide_input_in_errors=True)

    @model_validator(mode="wrap")
    @classmethod
    def _let_refused_models_pass(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Any:
        return value if value is REFUSED else handler(value)

    @field_validator("*", mode="wrap")
    @classmethod
    def _let_refused_values_pass(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        return value if value is REFUSED else handler(value)
