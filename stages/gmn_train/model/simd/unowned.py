"""Arrays without reference counts.

Numba counts references wherever an array is taken out of a tuple or sliced, by an atomic instruction each. In short
sequences that was a tenth of a layer's time on one thread, and on two the threads wait for each other, because they
count references to the same weights. An array without an owner is not counted.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,import-untyped"
# ruff: noqa: ARG001 - the arguments of an intrinsic and of what builds it are Numba's

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _without_owner(context, builder, kind, value):
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts = zip(kind.types, cgutils.unpack_tuple(builder, value), strict=True)
        return context.make_tuple(builder, kind, [_without_owner(context, builder, k, v) for k, v in parts])
    return value


@intrinsic
def unowned(typingctx, value):
    """An array, or a tuple of arrays, that does not keep its memory alive: the caller or `hold` must."""

    def build(context, builder, signature, arguments):
        return _without_owner(context, builder, signature.args[0], arguments[0])

    return value(value), build


@intrinsic
def hold(typingctx, value):
    """Keep a value's memory until here: Numba lets go of a variable after its last use."""

    def build(context, builder, signature, arguments):
        return context.get_dummy_value()

    return types.void(value), build
