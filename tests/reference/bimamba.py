"""Slow twins of `layers.conv` and `bimamba`: Algorithm 2 for one sequence, line by line, reversing rows."""

import torch
from torch.nn.functional import layer_norm, silu, softplus


def conv_silu(x, weight, bias):
    """Causal depthwise convolution of x (length, channels) and SiLU, one output at a time."""
    length = len(x)
    taps = weight.shape[1]
    rows = []
    for t in range(length):
        p = bias.clone()
        for k in range(taps):
            source = t - (taps - 1 - k)
            if source >= 0:
                p = p + weight[:, k] * x[source]
        rows.append(silu(p))
    return torch.stack(rows) if rows else 0 * x


def ssm(u, delta, A, B, C, D):
    """The recurrence for one sequence: u, delta (length, channels), A (channels, states), B, C (length, states)."""
    h = torch.zeros_like(A)
    rows = []
    for t in range(len(u)):
        A_bar = torch.exp(delta[t][:, None] * A)
        B_bar = delta[t][:, None] * B[t][None, :]
        h = A_bar * h + B_bar * u[t][:, None]
        rows.append(h @ C[t] + D * u[t])
    return torch.stack(rows) if rows else torch.zeros_like(u)


def branch_outputs(branch, phi):
    """Lines 2 to 9 (or 12 to 19) for the normalised rows phi, in the branch's own order of rows."""
    phi_d = conv_silu(phi @ branch.in_proj.weight.T, branch.conv_weight, branch.conv_bias)
    states = branch.A_log.shape[1]
    BC = phi_d @ branch.state_proj.weight.T
    low = phi_d @ branch.dt_down.weight.T
    delta = softplus(low @ branch.dt_up.weight.T + branch.dt_up.bias)
    y = ssm(phi_d, delta, -torch.exp(branch.A_log), BC[:, :states], BC[:, states:], branch.D)
    return (y * silu(phi @ branch.gate_proj.weight.T)) @ branch.out_proj.weight.T


def bimamba(layer, x):
    """The whole layer on one sequence x (length, width), without dropout."""
    phi = layer_norm(x, x.shape[-1:], layer.norm.weight, layer.norm.bias, layer.norm.eps)
    total = branch_outputs(layer.forward_branch, phi)
    if layer.backward_branch is not None:
        total = total + branch_outputs(layer.backward_branch, phi.flip(0)).flip(0)
    return x + total @ layer.out_proj.weight.T
