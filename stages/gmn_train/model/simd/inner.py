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


def _register(function: F, **options: bool) -> F:
    def choose(*_: Any) -> F:
        return function

    choose.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    overload(function, jit_options=OPTIONS | options)(choose)
    return function


def inner(function: F) -> F:
    """Let kernels call a plain function."""
    return _register(function)


def inlined(function: F) -> F:
    """The same, put in place of its call: passing on twenty arrays, of seven numbers each, is 140 arguments.

    For functions that are called in few places and often. The scan's as calls took 10% of a layer's time at three rows
    per sequence, 3% of its way forward at 17.
    """
    return _register(function, forceinline=True)
