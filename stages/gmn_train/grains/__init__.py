"""A step cut into *grains*: fixed parts of its work, whose results are put together in the grains' own order.

How many grains a step has is a setting; which process computes which is not. So results depend on the setting, and
never on the number of processes. Where grains need each other (statistics of a BatchNorm, states of other nodes, the
end of a scan), they meet: `Grain.gather`, `Grain.sum`, `Grain.sum_rows`.
"""
