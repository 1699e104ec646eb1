"""How functions are compiled that only kernels call.

As an overload of itself, a function is compiled once for integers; called as a jitted function, it would be compiled
again for every combination of constants in its calls. And it gets none of the wrappers that Python would call it by:
unpacking twenty arrays is more code than most of these functions. A layer's kernels then compile in 25 s, 42 s as
jitted functions.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from numba.extending import overload

F = TypeVar("F", bound=Callable[..., Any])
OPTIONS = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}


def inner(function: F) -> F:
    """Let kernels call a plain function."""

    def choose(*_: Any) -> F:
        return function

    choose.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    overload(function, jit_options=OPTIONS)(choose)
    return function
