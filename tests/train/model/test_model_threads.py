"""A whole model's outputs and gradients have the same bits for 1, 2 and 3 threads, whatever it is made of."""

import pytest
import torch

from gmn_pipeline import TokenSettings
from gmn_prep.datasets.entry import DatasetOptions
from gmn_prep.datasets.generated.minesweeper_grid import load_minesweeper_grid
from gmn_train.model import GMN, InputSource, ModelConfig, whole_inputs
from tests.train.model_stores import model_store

OPTIONS = {
    "between": {},
    "input": {"token_blocks": "input", "encoder": "mean", "token_layers": 2},
    "gated": {"mpnn": "gatedgcn", "node_scan": False, "norm": "layer"},
    "gine": {"mpnn": "gine", "residual": "identity", "ffn": 2},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    graph = load_minesweeper_grid(DatasetOptions(nodes=2500))
    return model_store(tmp_path_factory.mktemp("s") / "grid.zarr", graph, TokenSettings(2, 2, 2), block_size=1024)


@pytest.mark.parametrize("chunk_nodes", [None, 700])
@pytest.mark.parametrize("options", OPTIONS)
def test_bits_do_not_depend_on_threads(store, options, chunk_nodes):
    config = ModelConfig(width=32, node_layers=2, states=8, **OPTIONS[options])
    source = InputSource(store.view(), config)
    torch.manual_seed(0)
    model = GMN(config, source.facts)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            torch.manual_seed(1)
            model.load_state_dict(state)
            logits = model(whole_inputs(source, epoch=0, chunk_nodes=chunk_nodes)).logits
            weights = torch.randn(logits.shape, generator=torch.Generator().manual_seed(2))
            wanted = list(model.parameters())
            grads = torch.autograd.grad(logits, wanted, weights, allow_unused=True, materialize_grads=True)
            found.append([logits.detach(), *grads, *model.state_dict().values()])
    finally:
        torch.set_num_threads(before)
    names = ["logits", *dict(model.named_parameters()), *model.state_dict()]
    for other in found[1:]:
        differ = [n for n, a, b in zip(names, found[0], other, strict=True) if not torch.equal(a, b)]
        assert differ == []
