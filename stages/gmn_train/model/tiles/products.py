"""Matrix products on small row-major buffers, for use inside kernels: no BLAS, no threads, one order of sums.

    out[i, j] = Σ_k a[i, k] b[k, j],      columns in whole vectors of LANES (buffers are padded to that)

A block of ROWS x 64 sums stays in registers while k runs, which a loop nest left to the compiler does not get (it
stores and loads the sums at every k). So the innermost block is written as vector instructions of
LLVM, any processor's. Every sum runs over k in order, one fused multiply-add after the other, whatever the block it is
in: results do not depend on how rows are cut into tiles, and sums over rows can go on from tile to tile.

In cache on one core (AMD EPYC, AVX-512), (272, 64) x (64, 256): 107 GFLOP/s, torch (MKL) 98; sums over rows, (64, 136)
x (136, 256): 101. scipy's BLAS would come with its own threads, and torch.mm with Python and the GIL at every call, of
which a tile makes forty.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,import-untyped"
# ruff: noqa: ARG001 - the arguments of an intrinsic and of what builds it are Numba's

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gmn_train.model.simd.inner import inner

LANES = 16  # float32 of a 512-bit register
ROWS = 6  # 6 x 4 sums, 4 vectors of b and one entry of a: 29 of 32 registers
WIDEST = 4 * LANES
_FAST = ("contract",)


def _add_product(builder, every, line, total):
    return builder.fadd(builder.fmul(every, line, flags=_FAST), total, flags=_FAST)


def make_block(rows, vectors, add_product=_add_product):
    """out[:rows, :vectors * LANES] (+)= a b, on flat buffers from the given places on.

    add_product(builder, every, line, total): LANES sums go on by an entry of a, LANES times, and a line of b.
    """

    @intrinsic
    def block(typingctx, out, out_at, out_step, a, a_at, a_row, a_k, b, b_at, b_step, depth, add):
        signature = types.void(out, out_at, out_step, a, a_at, a_row, a_k, b, b_at, b_step, depth, add)

        def build(context, builder, signature, arguments):
            out, out_at, out_step, a, a_at, a_row, a_k, b, b_at, b_step, depth, add = arguments
            at = signature.args
            scalar = context.get_value_type(at[0].dtype)
            vector = ir.VectorType(scalar, LANES)

            def data(kind, value):
                return context.make_array(kind)(context, builder, value).data

            def load(pointer):
                kind = ir.VectorType(pointer.type.pointee, LANES)
                loaded = builder.load(builder.bitcast(pointer, kind.as_pointer()))
                loaded.align = scalar_bytes
                return loaded

            scalar_bytes = at[0].dtype.bitwidth // 8
            out_data = builder.gep(data(at[0], out), [out_at])
            a_data = builder.gep(data(at[3], a), [a_at])
            b_data = builder.gep(data(at[7], b), [b_at])
            index = a_at.type
            places = [
                [
                    builder.gep(
                        out_data,
                        [builder.add(builder.mul(out_step, ir.Constant(index, i)), ir.Constant(index, v * LANES))],
                    )
                    for v in range(vectors)
                ]
                for i in range(rows)
            ]
            sums = [[cgutils.alloca_once(builder, vector) for _ in range(vectors)] for _ in range(rows)]
            with builder.if_else(builder.trunc(add, ir.IntType(1))) as (then, otherwise):
                with then:
                    for i in range(rows):
                        for v in range(vectors):
                            builder.store(load(places[i][v]), sums[i][v])
                with otherwise:
                    for i in range(rows):
                        for v in range(vectors):
                            builder.store(ir.Constant(vector, None), sums[i][v])
            mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            first = ir.Constant(ir.IntType(32), 0)
            offsets = [builder.mul(a_row, ir.Constant(index, i)) for i in range(rows)]
            with cgutils.for_range(builder, depth, intp=index) as loop:
                row = builder.gep(b_data, [builder.mul(loop.index, b_step)])
                lines = [load(builder.gep(row, [ir.Constant(index, v * LANES)])) for v in range(vectors)]
                column = builder.gep(a_data, [builder.mul(loop.index, a_k)])
                for i in range(rows):
                    entry = builder.load(builder.gep(column, [offsets[i]]))
                    nothing = ir.Constant(ir.VectorType(entry.type, LANES), ir.Undefined)
                    every = builder.shuffle_vector(builder.insert_element(nothing, entry, first), nothing, mask)
                    for v in range(vectors):
                        builder.store(add_product(builder, every, lines[v], builder.load(sums[i][v])), sums[i][v])
            for i in range(rows):
                for v in range(vectors):
                    pointer = builder.bitcast(places[i][v], vector.as_pointer())
                    builder.store(builder.load(sums[i][v]), pointer).align = scalar_bytes
            return context.get_dummy_value()

        return signature, build

    return block


_six_by_1, _six_by_2, _six_by_3, _six_by_4 = (make_block(ROWS, v) for v in (1, 2, 3, 4))
_one_by_1, _one_by_2, _one_by_3, _one_by_4 = (make_block(1, v) for v in (1, 2, 3, 4))


@inner
def multiply(out, out_at, out_step, rows, columns, a, a_at, a_row, a_k, b, b_at, b_step, depth, add):
    """out (+)= a b: rows x columns sums over `depth`, of buffers that begin at *_at.

    Steps are in entries: out_step and b_step from row to row, a_row from row to row of a, a_k along the sum (so
    that a may be transposed). columns must be a multiple of LANES. add: go on from what out holds.
    """
    for j in range(0, columns, WIDEST):
        vectors = min(columns - j, WIDEST) // LANES
        whole = rows - rows % ROWS
        for i in range(0, whole, ROWS):
            o, f = out_at + i * out_step + j, a_at + i * a_row
            if vectors == 4:
                _six_by_4(out, o, out_step, a, f, a_row, a_k, b, b_at + j, b_step, depth, add)
            elif vectors == 3:
                _six_by_3(out, o, out_step, a, f, a_row, a_k, b, b_at + j, b_step, depth, add)
            elif vectors == 2:
                _six_by_2(out, o, out_step, a, f, a_row, a_k, b, b_at + j, b_step, depth, add)
            else:
                _six_by_1(out, o, out_step, a, f, a_row, a_k, b, b_at + j, b_step, depth, add)
        for i in range(whole, rows):
            o, f = out_at + i * out_step + j, a_at + i * a_row
            if vectors == 4:
                _one_by_4(out, o, out_step, a, f, a_row, a_k, b, b_at + j, b_step, depth, add)
            elif vectors == 3:
                _one_by_3(out, o, out_step, a, f, a_row, a_k, b, b_at + j, b_step, depth, add)
            elif vectors == 2:
                _one_by_2(out, o, out_step, a, f, a_row, a_k, b, b_at + j, b_step, depth, add)
            else:
                _one_by_1(out, o, out_step, a, f, a_row, a_k, b, b_at + j, b_step, depth, add)
