"""`rwf`: CRaWl's random-walk features (Tönshoff et al. 2023) along the stored walks, then a small convolution.

Each step of a walk carries its node's features, those of the edge walked, and two windows: is this node one of the
last `window` nodes, and is it linked to them. Windows see cycles and cliques that message passing cannot. CRaWl and
NeuralWalker look links up in a dense adjacency of the whole graph; a token holds its own edges, so none is needed.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gmn_pipeline.errors import ModelError
from gmn_train.data.token_chunks import TokenChunk
from gmn_train.machine.threads import run_tasks
from gmn_train.model.encoders.rwf_kernels import walk_windows
from gmn_train.model.layers.rowwise.full_precision import full

if TYPE_CHECKING:
    from gmn_train.settings.model_settings import ModelConfig

NODES_PER_TASK = 512


class RandomWalkEncoder(nn.Module):
    """token = W mean over walks and steps of ReLU(conv(ReLU(W_x h + W_e edge + W_w windows)))."""

    def __init__(self, width: int, window: int, conv_width: int = 3) -> None:
        super().__init__()
        self.window = window
        self.project = nn.Linear(width, width)
        self.windows = nn.Linear(2 * window - 1, width, bias=False)
        self.convolution = nn.Conv1d(width, width, conv_width, padding=conv_width // 2)
        self.out = nn.Linear(width, width)

    def prepare(self, h: Tensor, edge_states: Tensor | None) -> tuple[Tensor, ...]:
        """What is computed once per node, (U, d), and once per edge, (edges, d) where there are features."""
        return (self.project(h),) if edge_states is None else (self.project(h), edge_states)

    def forward(self, chunk: TokenChunk, projected: Tensor, edge_states: Tensor | None = None) -> Tensor:
        """(T, d)"""
        t = chunk.settings
        levels = [self.encode_walks(chunk, level, projected, edge_states) for level in range(t.m, 0, -1)]
        own = self.encode_steps(projected[chunk.nodes[chunk.node_ptr[:-1][t.m * t.s :: t.sequence_length]].long()])
        tokens = torch.cat([*levels, own.view(len(chunk), 1, -1)], 1)  # (B, L, d)
        out: Tensor = self.out(tokens.flatten(0, 1))
        return out

    def encode_walks(self, chunk: TokenChunk, level: int, projected: Tensor, edge_states: Tensor | None) -> Tensor:
        """Tokens of one level, (B, s, d)."""
        t = chunk.settings
        states, steps, windows = level_features(chunk, level, self.window)
        x = projected[states.long()] + full(self.windows(windows.to(projected.dtype)))  # (B*s*M*(level+1), d)
        if edge_states is not None:
            walked = (steps >= 0).nonzero().squeeze(1)
            x = x.index_add(0, walked, edge_states[steps[walked]])
        x = self.encode_steps(x.view(-1, level + 1, x.shape[1]))  # (B*s*M, d)
        return x.view(len(chunk), t.s, t.M, -1).mean(2)

    def encode_steps(self, x: Tensor) -> Tensor:
        """Walks (walks, steps, d), or (walks, d) for one step each, to (walks, d)."""
        x = x.unsqueeze(1) if x.dim() == 2 else x
        return torch.relu(full(self.convolution(torch.relu(x).transpose(1, 2)))).mean(2)


def level_features(chunk: TokenChunk, level: int, window: int) -> tuple[Tensor, Tensor, Tensor]:
    """States (R,) int32, steps (R,) int64 and windows (R, 2*window - 1) uint8 of a level's R = B*s*M*(level+1) steps.

    See `rwf_kernels.walk_windows`. Raises ModelError where the chunk lacks edges or walks.
    """
    if chunk.edges is None or chunk.edge_ptr is None or chunk.walks is None:
        raise ModelError("the `rwf` encoder needs the tokens' edges and walks; gather with parts=('edges', 'walks')")
    t, device = chunk.settings, chunk.nodes.device
    rows = len(chunk) * t.s * t.M * (level + 1)
    states, steps = torch.empty(rows, dtype=torch.int32), torch.empty(rows, dtype=torch.int64)
    windows = torch.empty(rows, 2 * window - 1, dtype=torch.uint8)
    edge_rows = torch.empty(0, 2, dtype=torch.int64) if chunk.edge_rows is None else chunk.edge_rows
    arrays = [
        a.cpu().numpy() for a in (chunk.nodes, chunk.node_ptr, chunk.edges, chunk.edge_ptr, edge_rows, chunk.walks)
    ]
    settings = (t.m, t.M, t.s, level, chunk.directed, chunk.largest, window)
    outputs = [a.numpy() for a in (states, steps, windows)]
    ranges = [(b, min(b + NODES_PER_TASK, len(chunk))) for b in range(0, len(chunk), NODES_PER_TASK)]
    run_tasks(lambda task: walk_windows(*arrays, *settings, *task, *outputs), ranges)
    return states.to(device), steps.to(device), windows.to(device)


def make(config: "ModelConfig", edge_features: bool) -> RandomWalkEncoder:  # noqa: ARG001 - added where there are any
    return RandomWalkEncoder(config.width, config.rwf_window)
