"""Chunks of tokens that are read while the model computes."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gmn_pipeline import TokenSettings
from gmn_pipeline.errors import ModelError
from gmn_train.data.token_chunks import LazyChunks
from gmn_train.model import whole_inputs
from tests.stores import ring_graph, write_store
from tests.train.small_runs import prepare, settings_for


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 0, 1, 2, 3], [2, 0, 3, 3, 1, 0]])
def test_chunks_read_ahead_are_those_asked_for(order: list[int]) -> None:
    made: list[int] = []

    def load(number: int):
        made.append(number)
        return f"chunk {number}"

    ahead, plain = (LazyChunks([5] * 4, load, ahead=a) for a in (True, False))  # type: ignore[arg-type]
    assert [ahead[i] for i in order] == [plain[i] for i in order] == [f"chunk {i}" for i in order]
    assert list(ahead) == list(plain)
    with pytest.raises(IndexError):
        ahead[4]


def test_a_chunk_that_cannot_be_read_ahead_is_told_when_it_is_needed() -> None:
    def load(number: int):
        if number == 1:
            raise ModelError("no chunk 1")
        return number

    chunks = LazyChunks([5] * 2, load)  # type: ignore[arg-type]
    assert chunks[0] == 0
    with pytest.raises(ModelError, match="no chunk 1"):
        chunks[1]


def test_reading_ahead_changes_no_bit_of_training(tmp_path: Path) -> None:
    store = write_store(tmp_path / "s.zarr", ring_graph(300, 300), TokenSettings(2, 2, 1))
    found = []
    for ahead in (True, False):
        training = prepare(settings_for(store))
        model = training.model
        inputs = whole_inputs(training.sampler.data.source, epoch=0, chunk_nodes=70, keep_tokens=False)
        assert isinstance(inputs.tokens, LazyChunks)
        inputs = replace(inputs, tokens=LazyChunks(inputs.tokens.sizes, inputs.tokens.load, ahead=ahead))
        torch.manual_seed(5)
        model.train()
        model(inputs).logits.square().sum().backward()
        found.append([p.grad for p in model.parameters() if p.grad is not None])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
