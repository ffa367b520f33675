"""Results of tools as JSON, and back."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidValueError

__all__ = ["to_json"]


def to_json(value: Any) -> Any:
    """The JSON of a framework's value: dataclasses, Pydantic models, dates and the like as Pydantic writes them."""
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value, inf_nan_mode="constants")
    except PydanticSerializationError as error:
        raise InvalidValueError(f"not JSON: {error}") from None
