"""exp2, sigmoid, softplus and GELU of vectors.

Numba from PyPI has no vector math library, so `exp` in an inner loop is a scalar call: 71 M of them (batch 2048, length
17, 128 channels, 16 states) take 0.17 s, these 0.02 s. x = k + r with integer k and |r| <= 1/2: 2**r is a polynomial
and 2**k an addition to the exponent bits. Errors: 1 ulp in float32, 3 ulp in float64. Below the smallest normal number
the result is that number instead of 0; above the largest, infinity.

Adding 1.5 * 2**23 (or 2**52) rounds to the nearest integer and leaves it in the low mantissa bits. Vectors allow
contraction only, whatever the flags of the kernel: reassociation would cancel that sum.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,import-untyped"
# ruff: noqa: ARG001 - the arguments of an intrinsic and of what builds it are Numba's

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gmn_train.model.simd.vectors import FAST

LOG2E = math.log2(math.e)
# 2**r on [-1/2, 1/2], minimax in relative error (2e-9). The constant is exactly 1, so decays near 1 are not
# biased and do not drift over long sequences.
EXP2 = (0.00015353362074381735, 0.0013398874493581207, 0.009618437357700777, 0.055503324709431826,
        0.24022647913624431, 0.6931472028551384, 1.0)  # fmt: skip
# log(1 + e) / e on [0, 1], minimax in relative error (5e-9).
LOG1P = (-0.0033184726534528, 0.020204585985112253, -0.05766444734156296, 0.10680555956053354, -0.15355396654507242,
         0.19695400703622765, -0.24958587465636484, 0.3333051132619507, -0.49999932763895855, 1.0)  # fmt: skip
# Taylor's series suffices in float64: the first term left out is 2e-16.
TAYLOR = tuple(math.log(2.0) ** k / math.factorial(k) for k in range(12, -1, -1))
# Twice the normal distribution's tail beyond x >= 0, by t = 1 / (1 + 0.2316419 x): Abramowitz and Stegun 26.2.17,
# error 7.5e-8.
TAIL = (1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.319381530, 0.0)
DENSITY = 1 / math.sqrt(2 * math.pi)
ATANH = tuple(1.0 / (2 * k + 1) for k in range(16, -1, -1))  # log(1 + e) = 2 atanh(e / (2 + e)), e in [0, 1]


class Writer:
    """Writes instructions on vectors of one kind."""

    def __init__(self, builder, kind):
        self.builder, self.kind, self.single = builder, kind, kind.dtype == types.float32

    def number(self, value):
        value = float(np.float32(value)) if self.single else float(value)
        scalar = ir.FloatType() if self.single else ir.DoubleType()
        return ir.Constant(ir.VectorType(scalar, self.kind.lanes), [ir.Constant(scalar, value)] * self.kind.lanes)

    def add(self, a, b):
        return self.builder.fadd(a, b, flags=FAST)

    def subtract(self, a, b):
        return self.builder.fsub(a, b, flags=FAST)

    def times(self, a, b):
        return self.builder.fmul(a, b, flags=FAST)

    def divide(self, a, b):
        return self.builder.fdiv(a, b)

    def larger(self, a, b):
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def smaller(self, a, b):
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), a, b)

    def polynomial(self, coefficients, x):
        """Horner, the highest power's coefficient first."""
        value = self.number(coefficients[0])
        for c in coefficients[1:]:
            value = self.add(self.times(value, x), self.number(c))
        return value

    def exp2(self, x):
        low, high, digits = (-126, 128, 23) if self.single else (-1022, 1024, 52)
        x = self.smaller(self.larger(x, self.number(low)), self.number(high))
        shift = self.number(1.5 * 2**digits)
        rounded = self.builder.fadd(x, shift)
        r = self.builder.fsub(x, self.builder.fsub(rounded, shift))
        p = self.polynomial(EXP2 if self.single else TAYLOR, r)
        whole = ir.VectorType(ir.IntType(32 if self.single else 64), self.kind.lanes)
        power = self.builder.shl(self.builder.bitcast(rounded, whole), ir.Constant(whole, [digits] * self.kind.lanes))
        return self.builder.bitcast(self.builder.add(self.builder.bitcast(p, whole), power), x.type)

    def sigmoid(self, x):
        one = self.number(1)
        return self.divide(one, self.add(one, self.exp2(self.times(self.number(-LOG2E), x))))

    def normal(self, x):
        """Distribution and density of the standard normal at x; for float32."""
        zero, one = self.number(0), self.number(1)
        far = self.larger(x, self.subtract(zero, x))
        t = self.divide(one, self.add(one, self.times(self.number(0.2316419), far)))
        e = self.exp2(self.times(self.times(self.number(-LOG2E / 2), x), x))
        density = self.times(self.number(DENSITY), e)
        tail = self.times(density, self.polynomial(TAIL, t))
        above = self.builder.fcmp_ordered(">", x, zero)
        return self.builder.select(above, self.subtract(one, tail), tail), density

    def gelu(self, x):
        return self.times(x, self.normal(x)[0])

    def gelu_slope(self, x):
        below, density = self.normal(x)
        return self.add(below, self.times(x, density))

    def softplus(self, x):
        zero = self.number(0)
        e = self.exp2(self.times(self.number(LOG2E), self.smaller(x, self.subtract(zero, x))))
        if self.single:
            log = self.times(e, self.polynomial(LOG1P, e))
        else:
            s = self.divide(e, self.add(self.number(2), e))
            log = self.times(self.times(self.number(2), s), self.polynomial(ATANH, self.times(s, s)))
        return self.add(self.larger(x, zero), log)


def _function(write):
    @intrinsic
    def apply(typingctx, x):
        def build(context, builder, signature, arguments):
            return write(Writer(builder, signature.args[0]), arguments[0])

        return x(x), build

    return apply


exp2 = _function(Writer.exp2)
"""2**x."""
sigmoid = _function(Writer.sigmoid)
"""1 / (1 + exp(-x))."""
gelu = _function(Writer.gelu)
"""x times the normal distribution at x."""
gelu_slope = _function(Writer.gelu_slope)
"""The derivative of gelu."""
softplus = _function(Writer.softplus)
"""log(1 + exp(x)), with full relative precision far below zero."""
