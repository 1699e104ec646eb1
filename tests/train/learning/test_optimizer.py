"""The optimizer has the bits and the state of torch's class."""

import copy

import torch
from torch import nn

from gmn_train.learning.optimizer import AdamW


def _twins() -> list[nn.ParameterList]:
    generator = torch.Generator().manual_seed(0)
    values = [torch.randn(shape, generator=generator) for shape in ((7, 5), (3, 4), (5,), (2,))]
    return [nn.ParameterList(value.clone() for value in values) for _ in range(2)]


def test_steps_are_those_of_torchs_class_and_so_are_they_after_a_resume() -> None:
    ours, theirs = _twins()
    groups = [{"params": list(theirs[:2]), "weight_decay": 0.1}, {"params": list(theirs[2:]), "weight_decay": 0.0}]
    wanted = torch.optim.AdamW(groups, fused=True)
    optimizer = AdamW(list(ours[:2]), list(ours[2:]), 0.1)
    generator = torch.Generator().manual_seed(1)
    for step in range(6):
        if step == 3:  # from a checkpoint of torch's class, as earlier runs have it
            optimizer = AdamW(list(ours[:2]), list(ours[2:]), 0.1)
            optimizer.load_state_dict(copy.deepcopy(wanted.state_dict()))
        optimizer.lr = 0.01 * (step + 1)
        for group in wanted.param_groups:
            group["lr"] = optimizer.lr
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            one.grad = torch.randn(one.shape, generator=generator) if number != 1 or step > 1 else None
            other.grad = None if one.grad is None else one.grad.clone()
        optimizer.step()
        wanted.step()
        assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
    saved, state = optimizer.state_dict()["state"], wanted.state_dict()["state"]
    assert saved.keys() == state.keys()
    assert all(torch.equal(saved[number][name], state[number][name]) for number in state for name in state[number])
    optimizer.zero_grad()
    assert all(parameter.grad is None for parameter in ours)
