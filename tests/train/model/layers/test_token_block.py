"""The token block: what is scanned in which order, what is read out, and chunks that change nothing."""

import numpy as np
import pytest
import torch

from gmn_pipeline import TokenSettings
from gmn_train.data.token_chunks import TokenChunk
from gmn_train.model.encoders import make_encoder
from gmn_train.model.layers.bimamba import BiMamba
from gmn_train.model.layers.token_block import TokenBlock, position_deltas
from gmn_train.model.tables import ENCODERS
from gmn_train.settings.model_settings import ModelConfig
from tests.stores import ring_graph
from tests.train.model_stores import model_store

TOKENS = TokenSettings(3, 2, 2)
WIDTH = 8


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    path = tmp_path_factory.mktemp("s") / "ring.zarr"
    return model_store(path, ring_graph(edge_features=True), TOKENS).view()


def chunks_of(view, step=None, repeats=None):
    n = view.store.num_nodes
    found = []
    for first in range(0, n, step or n):
        ids = np.arange(first, min(first + (step or n), n))
        batch = view.gather(ids, repeats=repeats)
        found.append(TokenChunk.of(batch, batch.nodes, batch.edge_slots, rows=n, directed=False, first=first))
    return found


def make_block(encoder="local", layers=2, dropout=0.0, **options):
    torch.manual_seed(0)
    body = make_encoder(ModelConfig(encoder=encoder, width=WIDTH, rwf_window=3), edge_features=True)
    scans = [BiMamba(WIDTH, states=4, expand=1) for _ in range(layers)]
    return TokenBlock(body, scans, TOKENS, width=WIDTH, dropout=dropout, **options).double()


def states(view, grad=False):
    rng = torch.Generator().manual_seed(1)
    h = torch.randn(view.store.num_nodes, WIDTH, dtype=torch.float64, generator=rng)
    edges = torch.randn(view.store.graph.num_slots, WIDTH, dtype=torch.float64, generator=rng)
    return h.requires_grad_(grad), edges.requires_grad_(grad)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_swapping_two_repeats_changes_nothing_but_that_order(view, encoder):
    block, (h, edges) = make_block(encoder), states(view)
    stored = np.tile(np.arange(2), (1, 3, 1))
    swapped = stored.copy()
    swapped[0, 1] = [1, 0]  # level 2 stands at positions 2 and 3 of 0..6
    with torch.no_grad():
        prepared = block.encoder.prepare(h, edges)
        one, other = (block.encode_tokens(chunks_of(view, repeats=r)[0], 0, *prepared) for r in (stored, swapped))
    torch.testing.assert_close(other, one[:, [0, 1, 3, 2, 4, 5, 6]], rtol=1e-12, atol=1e-12)


def test_the_last_position_is_the_node_itself(view):
    block, (h, edges) = make_block("mean"), states(view)
    with torch.no_grad():
        prepared = block.encoder.prepare(h, edges)
        tokens = block.encode_tokens(chunks_of(view)[0], 0, *prepared)
        torch.testing.assert_close(tokens[:, -1], prepared[0] + block.marks.level[0])
        block.order = "near-first"
        torch.testing.assert_close(block.encode_tokens(chunks_of(view)[0], 0, *prepared), tokens.flip(1))


def test_readouts(view):
    h, edges = states(view)
    found = {}
    for readout in ("last", "mean", "both-ends"):
        block = make_block(readout=readout)
        with torch.no_grad():
            x = block.encode_tokens(chunks_of(view)[0], 0, *block.encoder.prepare(h, edges))
            for layer in block.layers:
                x = layer(x)
            found[readout] = block(h, edges, chunks_of(view))
            wanted = {"last": x[:, -1], "mean": x.mean(1)}.get(readout)
            if wanted is None:
                wanted = block.ends(torch.cat([x[:, 0], x[:, -1]], 1))
        torch.testing.assert_close(found[readout], wanted)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("step", [1, 13])
def test_chunks_change_neither_results_nor_gradients_with_dropout_on(view, encoder, step):
    block = make_block(encoder, dropout=0.3).train()
    weights = torch.randn(view.store.num_nodes, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    found = []
    for cut in (None, step):
        h, edges = states(view, grad=True)
        torch.manual_seed(7)
        out = block(h, edges, chunks_of(view, cut))
        inputs = [h, edges, *block.parameters()]
        found.append([out.detach(), *torch.autograd.grad(out, inputs, weights, allow_unused=True)])
    for one, other in zip(*found, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-10)
    torch.manual_seed(8)
    assert not torch.allclose(block(*states(view), chunks_of(view)), found[0][0])  # another step, another mask


def test_chunks_keep_nothing_but_their_inputs_until_the_backward_pass(view):
    block = make_block("local", dropout=0.3).train()
    kept = {}
    for cut in (None, 4):
        saved = {}

        def pack(x, saved=saved):
            saved[x.untyped_storage().data_ptr()] = x.numel()
            return x

        h, edges = states(view, grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            block(h, edges, chunks_of(view, cut))
        kept[cut] = sum(saved.values())
    tokens = view.store.num_nodes * TOKENS.sequence_length
    assert kept[None] > 2 * tokens * WIDTH  # the input of each layer: they run on tiles
    assert kept[4] < 2 * tokens * WIDTH


def test_level_deltas_are_the_mean_step_sizes_of_each_level(view):
    block, (h, edges) = make_block(), states(view)
    whole = block.level_deltas(h, edges, chunks_of(view))
    torch.testing.assert_close(block.level_deltas(h, edges, chunks_of(view, 11)), whole)
    assert whole.shape == (2, 4)
    assert bool((whole > 0).all())
    with torch.no_grad():
        x = block.encode_tokens(chunks_of(view)[0], 0, *block.encoder.prepare(h, edges))
        at = position_deltas(block.layers[0], x)
    wanted = torch.stack([at[6], at[4:6].mean(), at[2:4].mean(), at[:2].mean()])
    torch.testing.assert_close(whole[0], wanted)
