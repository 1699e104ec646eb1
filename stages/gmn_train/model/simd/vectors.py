"""Vectors as values inside kernels: what the compiler finds by itself only in the simplest loops.

A loop over channels that reads and writes several buffers is vectorised with tests for overlap around it, or not at
all, and keeps its running sums in memory. With these a kernel says what is in a register. They are LLVM's own vectors,
whatever the processor: a vector of LANES float32 is one AVX-512 register, two of AVX2, four of NEON. Products and sums
contract to fused multiply-adds.

A *quad* is four vectors side by side, such as four states of LANES channels. Its four instructions do not wait for each
other: the chain of an exponential alone leaves the processor idle half of the time.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,import-untyped"
# ruff: noqa: ARG001 - the arguments of an intrinsic and of what builds it are Numba's

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing import signature as typing_signature
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic, lower_builtin, models, register_model

LANES = 16
QUAD = 4 * LANES
FAST = ("contract", "nsz")
_INT = ir.IntType(32)


class Vector(types.Type):
    """`lanes` numbers of one floating type."""

    def __init__(self, dtype, lanes):
        self.dtype, self.lanes = dtype, lanes
        super().__init__(name=f"Vector({dtype}, {lanes})")


def vector_type(dtype, lanes):
    return ir.VectorType(ir.FloatType() if dtype == types.float32 else ir.DoubleType(), lanes)


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, vector_type(fe_type.dtype, fe_type.lanes))


def _place(context, builder, kind, array, at):
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


def _loader(lanes):
    @intrinsic
    def apply(typingctx, array, at):
        def build(context, builder, signature, arguments):
            kind = signature.args[0]
            where = _place(context, builder, kind, *arguments)
            vector = builder.load(builder.bitcast(where, vector_type(kind.dtype, lanes).as_pointer()))
            vector.align = kind.dtype.bitwidth // 8
            return vector

        return Vector(array.dtype, lanes)(array, at), build

    return apply


load, load_quad = _loader(LANES), _loader(QUAD)
"""The LANES (or four times as many) entries of a contiguous array from entry `at` on."""


@intrinsic
def store(typingctx, array, at, value):
    """Write a vector to a contiguous array from entry `at` on."""

    def build(context, builder, signature, arguments):
        where = _place(context, builder, signature.args[0], *arguments[:2])
        where = builder.bitcast(where, arguments[2].type.as_pointer())
        builder.store(arguments[2], where).align = signature.args[0].dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, at, value), build


def _spread(builder, number, lanes):
    kind = ir.VectorType(number.type, lanes)
    nothing = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(nothing, number, ir.Constant(_INT, 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(_INT, lanes), [0] * lanes))


def _shuffle(builder, a, b, lanes):
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INT, len(lanes)), [*lanes]))


def _side_by_side(builder, four):
    left, right = (_shuffle(builder, four[i], four[i + 1], range(2 * LANES)) for i in (0, 2))
    return _shuffle(builder, left, right, range(QUAD))


def _quarters(builder, quad):
    return [_shuffle(builder, quad, quad, range(i * LANES, (i + 1) * LANES)) for i in range(4)]


@intrinsic
def load_one(typingctx, array, at):
    """A vector of LANES times the entry `at`."""

    def build(context, builder, signature, arguments):
        return _spread(builder, builder.load(_place(context, builder, signature.args[0], *arguments)), LANES)

    return Vector(array.dtype, LANES)(array, at), build


@intrinsic
def load_four(typingctx, array, at):
    """A quad: LANES times the entry `at`, LANES times the next, and so on."""

    def build(context, builder, signature, arguments):
        kind = signature.args[0]
        places = [_place(context, builder, kind, arguments[0], arguments[1])]
        places += [builder.gep(places[0], [ir.Constant(arguments[1].type, i)]) for i in (1, 2, 3)]
        return _side_by_side(builder, [_spread(builder, builder.load(p), LANES) for p in places])

    return Vector(array.dtype, QUAD)(array, at), build


@intrinsic
def four_times(typingctx, value):
    """A quad of one vector."""

    def build(context, builder, signature, arguments):
        return _side_by_side(builder, [arguments[0]] * 4)

    return Vector(value.dtype, QUAD)(value), build


@intrinsic
def sum_of_four(typingctx, quad):
    """The sum of a quad's four vectors."""

    def build(context, builder, signature, arguments):
        a, b, c, d = _quarters(builder, arguments[0])
        return builder.fadd(builder.fadd(a, b), builder.fadd(c, d))

    return Vector(quad.dtype, LANES)(quad), build


@intrinsic
def fill(typingctx, like, number):
    """A vector of one number, of the kind of `like`."""

    def build(context, builder, signature, arguments):
        kind = signature.args[0]
        number = context.cast(builder, arguments[1], signature.args[1], kind.dtype)
        return _spread(builder, number, kind.lanes)

    return like(like, number), build


def _bits(builder, array_kind, context, array, at, lanes):
    """Where the bits of a vector's lanes begin, byte `at` of a uint8 array, as a pointer to that many bits."""
    return builder.bitcast(_place(context, builder, array_kind, array, at), ir.IntType(lanes).as_pointer())


@intrinsic
def store_positive(typingctx, array, at, value):
    """One bit for each lane, whether it is above zero, to a uint8 array from byte `at` on."""

    def build(context, builder, signature, arguments):
        array, at, value = arguments
        lanes = signature.args[2].lanes
        above = builder.fcmp_ordered(">", value, ir.Constant(value.type, None))
        where = _bits(builder, signature.args[0], context, array, at, lanes)
        builder.store(builder.bitcast(above, ir.IntType(lanes)), where).align = 1
        return context.get_dummy_value()

    return types.void(array, at, value), build


@intrinsic
def keep_marked(typingctx, array, at, value):
    """value where the bits that `store_positive` left are set, else zero."""

    def build(context, builder, signature, arguments):
        array, at, value = arguments
        lanes = signature.args[2].lanes
        mask = builder.load(_bits(builder, signature.args[0], context, array, at, lanes))
        mask.align = 1
        marked = builder.bitcast(mask, ir.VectorType(ir.IntType(1), lanes))
        return builder.select(marked, value, ir.Constant(value.type, None))

    return value(array, at, value), build


@intrinsic
def keep_drawn(typingctx, array, at, threshold, value):
    """value where the bytes of a uint8 array, from `at` on, are at least `threshold`, else zero."""

    def build(context, builder, signature, arguments):
        array, at, threshold, value = arguments
        lanes = signature.args[3].lanes
        kind = ir.VectorType(ir.IntType(8), lanes)
        where = builder.bitcast(_place(context, builder, signature.args[0], array, at), kind.as_pointer())
        draws = builder.load(where)
        draws.align = 1
        least = _spread(builder, context.cast(builder, threshold, signature.args[2], types.uint8), lanes)
        return builder.select(builder.icmp_unsigned(">=", draws, least), value, ir.Constant(value.type, None))

    return value(array, at, threshold, value), build


@intrinsic
def keep_above(typingctx, z, value):
    """value where z is above zero, else zero."""

    def build(context, builder, signature, arguments):
        zero = ir.Constant(arguments[0].type, None)
        return builder.select(builder.fcmp_ordered(">", arguments[0], zero), arguments[1], zero)

    return value(z, value), build


@intrinsic
def relu(typingctx, value):
    """value where it is above zero, else zero."""

    def build(context, builder, signature, arguments):
        zero = ir.Constant(arguments[0].type, None)
        return builder.select(builder.fcmp_ordered(">", arguments[0], zero), arguments[0], zero)

    return value(value), build


@intrinsic
def spread(typingctx, number):
    """A vector of LANES times one number."""

    def build(context, builder, signature, arguments):
        return _spread(builder, arguments[0], LANES)

    return Vector(number, LANES)(number), build


def _operator(public, make):
    """`a op b` of vectors, lowered as it stands: an overload would be a function for the compiler to inline each
    time."""

    @infer_global(public)
    class Operator(AbstractTemplate):
        def generic(self, args, kws):  # noqa: ARG002
            if len(args) == 2 and isinstance(args[0], Vector) and args[0] == args[1]:
                return typing_signature(args[0], *args)
            return None

    @lower_builtin(public, Vector, Vector)
    def build(context, builder, signature, arguments):
        return make(builder, *arguments)


_operator(operator.add, lambda builder, a, b: builder.fadd(a, b, flags=FAST))
_operator(operator.sub, lambda builder, a, b: builder.fsub(a, b, flags=FAST))
_operator(operator.mul, lambda builder, a, b: builder.fmul(a, b, flags=FAST))


@intrinsic
def multiply_add(typingctx, a, b, c):
    """a * b + c, fused where the processor can. In `a * b + c * d` the compiler chooses which product is rounded first;
    here it does not."""

    def build(context, builder, signature, arguments):
        kind, number = arguments[0].type, signature.args[0]
        name = f"llvm.fmuladd.v{number.lanes}f{number.dtype.bitwidth}"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
        return builder.call(function, arguments)

    return a(a, b, c), build


@intrinsic
def store_totals(typingctx, array, at, quad):
    """array[at .. at + 4] = the sums over the lanes of each of a quad's vectors, in 13 instructions instead of 32."""

    def build(context, builder, signature, arguments):
        def halve(x, y):  # in each group of four lanes: two sums of x, two of y
            groups = range(0, LANES, 4)
            even = [i for g in groups for i in (g, g + 2, LANES + g, LANES + g + 2)]
            odd = [i for g in groups for i in (g + 1, g + 3, LANES + g + 1, LANES + g + 3)]
            return builder.fadd(_shuffle(builder, x, y, even), _shuffle(builder, x, y, odd))

        a, b, c, d = _quarters(builder, arguments[2])
        four = halve(halve(a, b), halve(c, d))
        eight = builder.fadd(_shuffle(builder, four, four, range(8)), _shuffle(builder, four, four, range(8, 16)))
        sums = builder.fadd(_shuffle(builder, eight, eight, range(4)), _shuffle(builder, eight, eight, range(4, 8)))
        where = _place(context, builder, signature.args[0], *arguments[:2])
        kind = signature.args[0].dtype
        builder.store(sums, builder.bitcast(where, sums.type.as_pointer())).align = kind.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, at, quad), build


@intrinsic
def total(typingctx, value):
    """The sum over a vector's lanes, always in the same order."""

    def build(context, builder, signature, arguments):
        vector, width = arguments[0], signature.args[0].lanes
        while width > 1:
            width //= 2
            low, high = range(width), range(width, 2 * width)
            vector = builder.fadd(_shuffle(builder, vector, vector, low), _shuffle(builder, vector, vector, high))
        return builder.extract_element(vector, ir.Constant(_INT, 0))

    return value.dtype(value), build
