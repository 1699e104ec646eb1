"""Matrix products of bfloat16 with float32 sums, for use inside kernels; see `products`.

Both factors are float32. They are rounded to bfloat16 into a room of 32-bit *pairs*, two neighbours along the sum each,
and multiplied by an instruction that adds two products to each of LANES sums (`vdpbf16ps`). Where the processor has no
such instruction, the pair is taken apart and added by two multiply-adds: the same roundings of the factors, at the
speed of float32.

Rounding costs an instruction or two for every sixteen entries of a, and b's is spread over the rows of a tile.
In cache on one core (AMD EPYC, AVX-512), rounding counted: (120, 64) x (64, 256) 203 GFLOP/s, in float32 113; sums over
rows, (64, 119) x (119, 256), 187 and 106.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,import-untyped"
# ruff: noqa: ARG001 - the arguments of an intrinsic and of what builds it are Numba's

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gmn_train.model.simd.inner import inner
from gmn_train.model.tiles.products import LANES, ROWS, WIDEST, make_block, multiply

HAS_DOT = bool(llvm.get_host_cpu_features().get("avx512bf16"))
"""Whether the processor multiplies pairs of bfloat16."""
_WORDS = ir.VectorType(ir.IntType(32), LANES)


class _BFloat(ir.Type):
    """LLVM's bfloat, which llvmlite has no name for."""

    def _to_string(self):
        return "bfloat"

    def __eq__(self, other):
        return isinstance(other, _BFloat)

    def __hash__(self):
        return hash("bfloat")


def _number(value):
    return ir.Constant(_WORDS, [value] * LANES)


def _floats(builder, words):
    return builder.bitcast(words, ir.VectorType(ir.FloatType(), LANES))


def add_pairs(builder, every, line, total):
    """total + the products of both halves of every lane's pairs."""
    if total.type.element != ir.FloatType():
        return total  # compiled with the float64 kernels, never run
    if HAS_DOT:
        halves = ir.VectorType(_BFloat(), 2 * LANES)
        kind = ir.FunctionType(total.type, [total.type, halves, halves])
        dot = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512bf16.dpbf16ps.512")
        return builder.call(dot, [total, *(builder.bitcast(x, halves) for x in (every, line))])
    multiply_add = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(total.type, [total.type] * 3), f"llvm.fma.v{LANES}f32"
    )
    for take in (lambda x: builder.shl(x, _number(16)), lambda x: builder.and_(x, _number(0xFFFF0000))):
        total = builder.call(multiply_add, [*(_floats(builder, take(x)) for x in (every, line)), total])
    return total


def _round(builder, context, kind, array, at):
    """LANES entries from `at` on, each rounded to the nearest bfloat16, ties to even, in the upper half of a word."""
    scalar = context.get_value_type(kind.dtype)
    where = builder.gep(context.make_array(kind)(context, builder, array).data, [at])
    vector = builder.load(builder.bitcast(where, ir.VectorType(scalar, LANES).as_pointer()))
    vector.align = kind.dtype.bitwidth // 8
    if kind.dtype == types.float64:  # compiled with the rest, never run
        vector = builder.fptrunc(vector, ir.VectorType(ir.FloatType(), LANES))
    bits = builder.bitcast(vector, _WORDS)
    odd = builder.and_(builder.lshr(bits, _number(16)), _number(1))
    return builder.add(bits, builder.add(odd, _number(0x7FFF)))


def _store(builder, context, kind, array, at, words):
    where = builder.gep(context.make_array(kind)(context, builder, array).data, [at])
    builder.store(words, builder.bitcast(where, words.type.as_pointer())).align = 4


@intrinsic
def store_rows(typingctx, pairs, to, x, at, other):
    """pairs[to .. to + LANES] = x[at ..] beside x[other ..]; a negative `other` stands for zeros."""

    def build(context, builder, signature, arguments):
        pairs, to, x, at, other = arguments
        kind, first = signature.args[2], ir.Constant(other.type, 0)
        low = builder.lshr(_round(builder, context, kind, x, at), _number(16))
        there = builder.icmp_signed(">=", other, first)
        high = _round(builder, context, kind, x, builder.select(there, other, at))
        mask = builder.select(there, _number(0xFFFF0000), _number(0))
        _store(builder, context, signature.args[0], pairs, to, builder.or_(low, builder.and_(high, mask)))
        return context.get_dummy_value()

    return types.void(pairs, to, x, at, other), build


@intrinsic
def store_columns(typingctx, pairs, to, x, at):
    """pairs[to .. to + LANES / 2] = x[at ..] as it stands, two entries a word."""

    def build(context, builder, signature, arguments):
        pairs, to, x, at = arguments
        words = builder.lshr(_round(builder, context, signature.args[2], x, at), _number(16))
        halves = builder.trunc(words, ir.VectorType(ir.IntType(16), LANES))
        packed = builder.bitcast(halves, ir.VectorType(ir.IntType(32), LANES // 2))
        _store(builder, context, signature.args[0], pairs, to, packed)
        return context.get_dummy_value()

    return types.void(pairs, to, x, at), build


_six_by_1, _six_by_2, _six_by_3, _six_by_4 = (make_block(ROWS, v, add_pairs) for v in (1, 2, 3, 4))
_one_by_1, _one_by_2, _one_by_3, _one_by_4 = (make_block(1, v, add_pairs) for v in (1, 2, 3, 4))


@inner
def pack_rows(pairs, to, x, at, step, depth, columns):
    """Pairs of rows of x from `at` on, (depth / 2, columns); a last odd row is paired with zeros."""
    for k in range(0, depth, 2):
        row = at + k * step
        for j in range(0, columns, LANES):
            store_rows(pairs, to + (k // 2) * columns + j, x, row + j, row + step + j if k + 1 < depth else -1)


@inner
def pack_columns(pairs, to, x, at, step, rows, columns):
    """Pairs of columns of x from `at` on, (rows, columns / 2)."""
    for i in range(rows):
        for j in range(0, columns, LANES):
            store_columns(pairs, to + (i * columns + j) // 2, x, at + i * step + j)


@inner
def product(out, out_at, out_step, rows, columns, a, a_at, a_row, a_k, b, b_at, b_step, depth, add, pairs):
    """As `multiply`; with a room for pairs, of bfloat16. Then a's rows (its columns, if it is transposed) are whole
    vectors, with zeros or numbers behind the end of the sum."""
    if pairs.size == 0:
        multiply(out, out_at, out_step, rows, columns, a, a_at, a_row, a_k, b, b_at, b_step, depth, add)
        return
    half, padded = (depth + 1) // 2, (depth + LANES - 1) // LANES * LANES
    row, along = padded // 2, 1
    if a_k == 1:
        pack_columns(pairs, 0, a, a_at, a_row, rows, padded)
        b_to = rows * row
    else:
        row, along = 1, (rows + LANES - 1) // LANES * LANES
        pack_rows(pairs, 0, a, a_at, a_k, depth, along)
        b_to = half * along
    pack_rows(pairs, b_to, b, b_at, b_step, depth, columns)
    for j in range(0, columns, WIDEST):
        vectors = min(columns - j, WIDEST) // LANES
        whole = rows - rows % ROWS
        for i in range(0, whole, ROWS):
            o, f = out_at + i * out_step + j, i * row
            if vectors == 4:
                _six_by_4(out, o, out_step, pairs, f, row, along, pairs, b_to + j, columns, half, add)
            elif vectors == 3:
                _six_by_3(out, o, out_step, pairs, f, row, along, pairs, b_to + j, columns, half, add)
            elif vectors == 2:
                _six_by_2(out, o, out_step, pairs, f, row, along, pairs, b_to + j, columns, half, add)
            else:
                _six_by_1(out, o, out_step, pairs, f, row, along, pairs, b_to + j, columns, half, add)
        for i in range(whole, rows):
            o, f = out_at + i * out_step + j, i * row
            if vectors == 4:
                _one_by_4(out, o, out_step, pairs, f, row, along, pairs, b_to + j, columns, half, add)
            elif vectors == 3:
                _one_by_3(out, o, out_step, pairs, f, row, along, pairs, b_to + j, columns, half, add)
            elif vectors == 2:
                _one_by_2(out, o, out_step, pairs, f, row, along, pairs, b_to + j, columns, half, add)
            else:
                _one_by_1(out, o, out_step, pairs, f, row, along, pairs, b_to + j, columns, half, add)


@inner
def pairs_room(rows, widest, half):
    """Room for the pairs of products of up to `rows` rows and `widest` columns, aligned; none without `half`."""
    size = (rows + 2) * widest + max(rows + 2, widest) * widest if half else 0
    buffer = np.empty(size + LANES, np.int32)
    skip = (-buffer.ctypes.data % 64) // 4
    return buffer[skip : skip + size]
