"""Types of values: numbers as people write them, within their ranges, names, and schedules."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from dba3c.config import names

THOUSANDS = {"k": 1e3, "M": 1e6, "G": 1e9}


def as_number(value: Any) -> Any:
    """Python counts True as 1, but nobody means that; PyYAML takes 1e6, 10k and 1M for words, but nobody does."""
    if isinstance(value, bool):
        raise ValueError("input should be a number")
    with suppress(ValueError):
        if isinstance(value, str) and value[-1:] in THOUSANDS:
            return round(float(value[:-1]) * THOUSANDS[value[-1]], 6)  # 0.7M is not 699999.9999999999
        return float(value) if isinstance(value, str) else value
    return value


Number = BeforeValidator(as_number)
Count = Annotated[int, Field(ge=1, le=10**9), Number]
CountOrNever = Annotated[int, Field(ge=0, le=10**9), Number]
Steps = Annotated[int, Field(ge=1, le=10**12), Number]  # a century at 300 steps/s; clocks and displays can count it
Threads = Annotated[int, Field(ge=1, le=64), Number]
Units = Annotated[int, Field(ge=1, le=2**16), Number]
Fraction = Annotated[float, Field(ge=0, lt=1), Number]
Probability = Annotated[float, Field(ge=0, le=1), Number]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), Number]
Seconds = Annotated[float, Field(gt=0, le=10**9), Number]  # what operating systems can wait for
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False), Number]
SecondsOrNever = Annotated[float, Field(ge=0, allow_inf_nan=False), Number]
MinutesOrNever = Annotated[float, Field(ge=0, le=10**7), Number]
Score = Annotated[float, Field(allow_inf_nan=False), Number]


def named(key: str) -> AfterValidator:
    """Accept the names that the registry has for this key."""
    return AfterValidator(partial(names.check, key))


def null_as_none(value: Any) -> Any:
    """yaml's null says the same as the word none."""
    return "none" if value is None else value


# A comma, as yaml takes 1:30 for ninety and 0x3 for three.
PAIR = r"^(none|[0-9]{1,9}(\.[0-9]{1,9})?,[0-9]{1,9}(\.[0-9]{1,9})?)$"
Slowdown = Annotated[str, Field(pattern=PAIR), BeforeValidator(null_as_none)]


Schedule = Literal["constant", "linear", "quadratic"]
POWERS: dict[Schedule, int] = {"constant": 0, "linear": 1, "quadratic": 2}


def share(schedule: Schedule, progress: float) -> float:
    """What is left of a number when `progress` (0 to 1) of the training is done."""
    return max(0.0, 1.0 - progress) ** POWERS[schedule]
