"""The token block: tokens encoded from node states, scanned as each node's sequence, read out as one vector per node.

One implementation serves `token_blocks = "input"` (the paper: once, on the projected features) and blocks between node
layers (on hidden states). Chunks of nodes are independent of each other, so with more than one, each runs under
recomputation: memory is one chunk's activations plus O(n * width), and results and gradients are those of one pass,
dropout included, because its mask is keyed by node.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, softplus

from gmn_pipeline.store.format.token_settings import TokenSettings
from gmn_train.data.token_chunks import TokenChunk, chunk_sizes
from gmn_train.grains.grain import row_grain_here
from gmn_train.grains.rows import gather_rows
from gmn_train.model.layers.bimamba import BiMamba
from gmn_train.model.layers.conv import conv_rows
from gmn_train.model.layers.recompute import run_chunks
from gmn_train.model.layers.rowwise.full_precision import full
from gmn_train.model.layers.token_marks import TokenMarks
from gmn_train.settings.model_settings import Readout, TokenOrder


class TokenBlock(nn.Module):
    """encoder -> marks (level, size, dropout) -> BiMamba layers -> readout.

    Args:
        encoder: a TokenEncoder.
        layers: BiMamba layers over the sequence; none only with readout `mean`, the control of the scan.
        width, scan_width: features of node states, and of tokens.
        edges: whether the encoder reads edge features.
        settings: of the tokens; a chunk may have a smaller M or s, never more levels.
        readout: `last` the node's own position, `mean` of all, `both-ends` a linear map of first and last.
        order: `far-first` levels m..0, the node itself last; `near-first` the paper's Algorithm 1 to the letter.
        dropout: of token encodings.
    """

    def __init__(
        self,
        encoder: nn.Module,
        layers: Sequence[BiMamba],
        settings: TokenSettings,
        *,
        width: int,
        scan_width: int | None = None,
        edges: bool = False,
        readout: Readout = "last",
        order: TokenOrder = "far-first",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder, self.layers = encoder, nn.ModuleList(layers)
        self.readout, self.order = readout, order
        scan_width = width if scan_width is None else scan_width
        self.marks = TokenMarks(scan_width, settings.m + 1, dropout)
        self.ends = nn.Linear(2 * scan_width, scan_width) if readout == "both-ends" else None
        same = scan_width == width
        self.down = None if same else nn.Linear(width, scan_width)
        self.down_edges = None if same or not edges else nn.Linear(width, scan_width)
        self.up = None if same else nn.Linear(scan_width, width)

    def forward(self, h: Tensor, edge_states: Tensor | None, chunks: Sequence[TokenChunk]) -> Tensor:
        """Node states h (U, d) and projected edge features to (B, d), one row for each node that has tokens."""
        key = int(torch.randint(2**62, ()))  # this pass's dropout; torch's generator is the only state
        prepared = self.prepare(h, edge_states)
        if len(chunks) == 0:
            return h[:0]
        if len(chunks) == 1:
            read = self.encode_nodes(chunks[0], key, *prepared)
        else:
            sizes = chunk_sizes(chunks)
            parameters = [p for p in self.parameters() if p.requires_grad]
            read = run_chunks(
                lambda i, again, *p: self.encode_nodes(chunks[i], key, *p, again=again), sizes, prepared, parameters
            )
        return read if self.up is None else full(self.up(read))

    def prepare(self, h: Tensor, edge_states: Tensor | None) -> list[Tensor]:
        """What is computed once per node: (U, .) each."""
        if self.down is not None:
            h = full(self.down(h))
        if self.down_edges is not None and edge_states is not None:
            edge_states = full(self.down_edges(edge_states))
        prepared = [full(p) for p in self.encoder.prepare(h, edge_states)]  # type: ignore[operator]
        if (grain := row_grain_here()) is not None:  # tokens reach beyond its rows
            prepared = [p if p is edge_states else gather_rows(p, grain) for p in prepared]
        return prepared

    def encode_nodes(self, chunk: TokenChunk, key: int, *prepared: Tensor, again: bool = False) -> Tensor:
        """A chunk's nodes, (B, d); again: for the gradient alone, with values that nobody reads."""
        x = self.encode_tokens(chunk, key, *prepared)  # (B, L, d)
        read: Tensor
        for number, layer in enumerate(self.layers, 1):
            if number == len(self.layers) and self.readout == "last":
                read = layer(x, only_last=True, again=again)
                return read
            x = layer(x)
        read = x.mean(1) if self.ends is None else full(self.ends(torch.cat([x[:, 0], x[:, -1]], 1)))
        return read

    def encode_tokens(self, chunk: TokenChunk, key: int, *prepared: Tensor) -> Tensor:
        """A chunk's sequences, (B, L, d), in scan order."""
        tokens = full(self.encoder(chunk, *prepared))  # (T, d)
        tokens = self.marks(tokens, chunk, key)
        x: Tensor = tokens.view(len(chunk), chunk.length, -1)
        return x if self.order == "far-first" else x.flip(1)

    @torch.no_grad()
    def level_deltas(self, h: Tensor, edge_states: Tensor | None, chunks: Sequence[TokenChunk]) -> Tensor:
        """Mean Δ that each level's tokens receive, by BiMamba layer: (layers, m+1), level 0 first.

        A large Δ lets a token overwrite the state, a small one lets it pass by: what the model selects.
        """
        prepared = self.prepare(h, edge_states)
        total, nodes = torch.zeros(0), 0
        levels = torch.zeros(0, dtype=torch.int64)
        for chunk in chunks:
            x = self.encode_tokens(chunk, 0, *prepared)
            rows = []
            for layer in self.layers:
                assert isinstance(layer, BiMamba)
                rows.append(position_deltas(layer, x) * len(chunk))
                x = layer(x)
            total = torch.stack(rows) + (total if nodes else 0)  # (layers, L)
            nodes += len(chunk)
            levels = torch.from_numpy(chunk.settings.levels.copy())
            levels = (levels if self.order == "far-first" else levels.flip(0)).to(total.device)
        if not nodes:
            return torch.zeros(len(self.layers), len(self.marks.level))
        sums = total.new_zeros(len(self.layers), int(levels.max()) + 1).index_add(1, levels, total / nodes)
        return sums / torch.bincount(levels)


def position_deltas(layer: BiMamba, x: Tensor) -> Tensor:
    """Mean Δ at each position of sequences x (B, L, d), over sequences, channels and directions: (L,)."""
    rows = layer.norm(x.flatten(0, 1))  # (B*L, d)
    ptr = torch.arange(x.shape[0] + 1) * x.shape[1]
    deltas = []
    for branch in (layer.forward_branch, layer.backward_branch):
        if branch is None:
            continue
        u = conv_rows(full(branch.in_proj(rows)), branch.conv_weight, branch.conv_bias, ptr, branch.reverse)
        dt = linear(branch.dt_down(u), branch.dt_up.weight, branch.dt_up.bias)  # (B*L, E)
        deltas.append(softplus(full(dt)).mean(1).view(x.shape[:2]).mean(0))
    return torch.stack(deltas).mean(0)
