"""The selective scan: backends agree, borders hold, bits repeat."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gmn_train.model.scan import ScanInputs, gated_scans, selective_scan
from gmn_train.model.scan.kernels import CHUNK
from tests.reference.selective_scan import scan_one
from tests.train.model.scan.scan_inputs import TOLERANCE, assert_close, make_inputs, pointers, with_gradients

CPU_BACKENDS = ["reference", "numba"]


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("backend", CPU_BACKENDS)
def test_hand_computed(backend):
    # Δ = ln 2 and A = -1 halve the state: h = ln 2 · (1, 1/2 + 2·3), y = C h + u / 2 with C = (1, 10).
    u, delta = torch.tensor([[[1.0], [2.0]]]), torch.full((1, 2, 1), math.log(2))
    B, C = torch.tensor([[[1.0], [3.0]]]), torch.tensor([[[1.0], [10.0]]])
    y = selective_scan(u, delta, torch.tensor([[-1.0]]), B, C, torch.tensor([0.5]), backend=backend)
    expected = torch.tensor([[[math.log(2) + 0.5], [65 * math.log(2) + 1.0]]])
    torch.testing.assert_close(y, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("reverse", [False, True])
def test_reference_equals_slow_twin(reverse):
    lengths = [3, 0, 1, 6]
    inputs = make_inputs((sum(lengths),), 3, 4)
    y = selective_scan(*inputs, seq_ptr=pointers(lengths), reverse=reverse, backend="reference")
    u, delta, A, B, C, D = (x.detach() for x in inputs)
    pieces = [x.split(lengths) for x in (u, delta, B, C)]
    expected = [
        row
        for u_s, delta_s, B_s, C_s in zip(*pieces, strict=True)
        for row in scan_one(*(x.tolist() for x in (u_s, delta_s, A, B_s, C_s, D)), reverse)
    ]
    torch.testing.assert_close(y.detach(), torch.tensor(expected, dtype=torch.float64))


def test_reference_equals_mambapy():
    mambapy = pytest.importorskip("mambapy.mamba")
    inputs = make_inputs((2, 16), 32, 16, torch.float32)
    block = mambapy.MambaBlock(mambapy.MambaConfig(d_model=16, n_layers=1))
    theirs = with_gradients(block.selective_scan(*inputs), inputs)
    assert_close(with_gradients(selective_scan(*inputs, backend="reference"), inputs), theirs, 1e-5)


@settings(deadline=None, max_examples=60)
@given(
    lengths=st.lists(st.one_of(st.integers(0, 9), st.integers(CHUNK - 2, 2 * CHUNK + 2)), max_size=6),
    channels=st.one_of(st.integers(1, 9), st.sampled_from([63, 64, 65, 130])),
    states=st.integers(1, 64),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    reverse=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_numba_equals_reference(lengths, channels, states, dtype, reverse, seed):
    inputs = make_inputs((sum(lengths),), channels, states, dtype, seed)
    results = [
        with_gradients(selective_scan(*inputs, seq_ptr=pointers(lengths), reverse=reverse, backend=backend), inputs)
        for backend in ("numba", "reference")
    ]
    assert_close(*results, TOLERANCE[dtype])


@settings(deadline=None, max_examples=20)
@given(
    batch=st.integers(0, 40),
    length=st.integers(0, 20),
    channels=st.integers(1, 70),
    states=st.integers(1, 20),
    reverse=st.booleans(),
    skip=st.booleans(),
)
def test_unpacked_batch(batch, length, channels, states, reverse, skip):
    inputs = make_inputs((batch, length), channels, states)
    used = inputs if skip else inputs[:-1]
    results = [
        with_gradients(selective_scan(*used, reverse=reverse, backend=b), inputs) for b in ("numba", "reference")
    ]
    assert_close(*results, 1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_long_sequence_shared_by_channels(dtype):
    inputs = make_inputs((1, 1000), 130, 5, dtype)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    theirs = with_gradients(selective_scan(*exact, backend="reference"), exact)
    ours = with_gradients(selective_scan(*inputs), inputs)
    assert_close([x.double() for x in ours], theirs, TOLERANCE[dtype])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("states", [1, 4])
def test_gradcheck(reverse, states):
    lengths = [3, 0, CHUNK + 2]
    inputs = make_inputs((sum(lengths),), 2, states)
    ptr = pointers(lengths)
    torch.autograd.gradcheck(lambda *x: selective_scan(*x, seq_ptr=ptr, reverse=reverse, backend="numba"), inputs)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("states", [3, 16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fused_softplus_and_gate(gated, states, dtype):
    lengths = [5, 1, 2 * CHUNK, 17]
    u, dt, A, B, C, D = make_inputs((sum(lengths),), 70, states, dtype)
    BC = torch.cat([B, C], 1).detach().requires_grad_()
    rng = torch.Generator().manual_seed(5)
    bias, z = (torch.randn(s, 70, generator=rng).to(dtype) for s in (1, sum(lengths)))
    inputs = [u, dt, A, BC, D, bias[0].requires_grad_(), *([z.requires_grad_()] if gated else [])]
    results = [
        with_gradients(
            gated_scans([ScanInputs(*inputs[:6], z if gated else None, pointers(lengths), reverse=True)], b)[0], inputs
        )
        for b in ("numba", "reference")
    ]
    assert_close(*results, TOLERANCE[dtype], ["y", "u", "dt", "A", "BC", "D", "bias", "z"][: len(inputs) + 1])


def test_both_directions_at_once_equal_each_alone():
    """To the bit: they share threads, nothing else, and may differ in length."""
    scans, inputs = [], []
    for number, lengths in enumerate(([4000], [7, 3])):
        u, dt, A, B, C, D = make_inputs((sum(lengths),), 6, 4)
        BC = torch.cat([B, C], 1).detach().requires_grad_()
        inputs.append([u, dt, A, BC, D])
        scans.append(ScanInputs(u, dt, A, BC, D, D.detach(), None, pointers(lengths), reverse=number == 1))
    for number, scan in enumerate(scans):
        together = gated_scans(scans, "numba")
        alone = with_gradients(gated_scans([scan], "numba")[0], inputs[number])
        for ours, expected in zip(with_gradients(together[number], inputs[number]), alone, strict=True):
            assert torch.equal(ours, expected)


@pytest.mark.parametrize("backend", CPU_BACKENDS)
@pytest.mark.parametrize("reverse", [False, True])
def test_packed_equals_each_alone(backend, reverse):
    lengths = [4, 0, 40, 1, 7]
    inputs = make_inputs((sum(lengths),), 6, 4, torch.float32)
    u, delta, A, B, C, D = inputs
    y, gu, gdelta, *_ = with_gradients(
        selective_scan(*inputs, seq_ptr=pointers(lengths), reverse=reverse, backend=backend), inputs
    )
    weights = torch.randn(y.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).float()
    at = 0
    for length in lengths:
        part = slice(at, at + length)
        alone = selective_scan(
            u[None, part], delta[None, part], A, B[None, part], C[None, part], D, reverse=reverse, backend=backend
        )
        torch.testing.assert_close(alone[0], y[part], rtol=1e-6, atol=1e-6)
        if length:
            grads = torch.autograd.grad(alone, [u, delta], weights[None, part])
            torch.testing.assert_close(grads[0][part], gu[part], rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(grads[1][part], gdelta[part], rtol=1e-5, atol=1e-5)
        at += length


def test_other_sequences_change_no_bit():
    inputs = make_inputs((3000,), 20, 8, torch.float32)
    u, delta, A, B, C, D = (x.detach() for x in inputs)
    few = selective_scan(u[:30], delta[:30], A, B[:30], C[:30], D, seq_ptr=pointers([17, 13]))
    many = selective_scan(u, delta, A, B, C, D, seq_ptr=pointers([17, 13, *[27] * 110]))
    assert torch.equal(few, many[:30])


@pytest.mark.parametrize("backend", CPU_BACKENDS)
def test_reverse_is_flipping(backend):
    u, delta, A, B, C, D = make_inputs((3, 37), 5, 3)
    back = selective_scan(u, delta, A, B, C, D, reverse=True, backend=backend)
    flipped = [x.flip(1) for x in (u, delta, B, C)]
    forth = selective_scan(flipped[0], flipped[1], A, flipped[2], flipped[3], D, backend=backend)
    torch.testing.assert_close(back, forth.flip(1))


def test_strided_inputs():
    u, delta, A, B, C, D = make_inputs((4, 9), 6, 4)
    wide = torch.cat([u, delta, B, C], dim=2)
    views = wide.split([6, 6, 4, 4], dim=2)
    y = selective_scan(views[0], views[1], A.T.contiguous().T, views[2], views[3], D)
    torch.testing.assert_close(y, selective_scan(u, delta, A, B, C, D))


@pytest.mark.parametrize("rows", [(300, 17), (1, 5000)])
def test_same_bits_for_any_thread_count(rows, threads):
    inputs = make_inputs(rows, 130, 16, torch.float32)
    results = []
    for count in (1, 2, 5, 2):
        threads(count)
        results.append(with_gradients(selective_scan(*inputs), inputs))
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_two_python_threads_at_once(threads):
    threads(2)
    inputs = make_inputs((400, 17), 64, 16, torch.float32)
    expected = with_gradients(selective_scan(*inputs), inputs)

    def run(_):
        return with_gradients(selective_scan(*inputs), inputs)

    with ThreadPoolExecutor(2) as pool:
        for result in pool.map(run, range(8)):
            assert all(torch.equal(a, b) for a, b in zip(result, expected, strict=True))


def test_saves_little_for_the_backward_pass():
    inputs = make_inputs((1, 20_000), 64, 16, torch.float32)
    saved = 0

    def count(x):
        nonlocal saved
        saved += x.numel()
        return x

    with torch.autograd.graph.saved_tensors_hooks(count, lambda x: x):
        selective_scan(*inputs)
    assert saved < 2 * sum(x.numel() for x in inputs)  # every state would be 1024 numbers a row, not 160


def test_borders_changed_after_the_forward_pass():
    inputs = make_inputs((40,), 6, 4)
    ptr = pointers([20, 20])
    expected = with_gradients(selective_scan(*inputs, seq_ptr=ptr), inputs)
    y = selective_scan(*inputs, seq_ptr=ptr)
    ptr.fill_(10**9)
    for ours, theirs in zip(with_gradients(y, inputs), expected, strict=True):
        assert torch.equal(ours, theirs)


def test_extreme_decays():
    for delta, A in [(1e30, -1e30), (50.0, -50.0), (1e-30, -1.0), (0.0, -1.0)]:
        ones = torch.ones(1, 3, 1)
        y = selective_scan(ones, ones * delta, torch.tensor([[A]]), ones, ones)
        expected = selective_scan(ones, ones * delta, torch.tensor([[A]]), ones, ones, backend="reference")
        torch.testing.assert_close(y, expected)
