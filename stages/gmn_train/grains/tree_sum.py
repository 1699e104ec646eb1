"""A sum over numbered tensors whose bits depend on their numbers alone, not on who adds which first.

Leaves 0, 1, 2, ... are added in pairs, pairs in pairs of pairs, and so on: a binary tree over the numbers. A process
that holds the leaves [lo, hi) adds up whole branches of it and sends those, at most two per height and one where the
cut is even: far less than all leaves, and the same bits.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Node:
    """The sum of leaves index * 2**height up to (index + 1) * 2**height."""

    height: int
    index: int
    value: Tensor
    owned: bool = False
    """Whether `value` may be overwritten."""


class TreeSum:
    """Takes nodes from left to right."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def add(self, node: Node) -> None:
        """Add a node, and whatever is complete with it."""
        while self.nodes and self._are_siblings(self.nodes[-1], node):
            left = self.nodes.pop()
            total = left.value.add_(node.value) if left.owned else left.value + node.value
            node = Node(node.height + 1, node.index // 2, total, True)
        self.nodes.append(node)

    def add_leaf(self, number: int, value: Tensor) -> None:
        self.add(Node(0, number, value))

    @staticmethod
    def _are_siblings(left: Node, right: Node) -> bool:
        return left.height == right.height and left.index % 2 == 0 and right.index == left.index + 1

    def total(self) -> Tensor:
        """The sum of all leaves; branches without a sibling are added from the right."""
        *others, last = self.nodes
        value = last.value
        for node in reversed(others):
            value = node.value + value
        return value


def cover(lo: int, hi: int) -> list[tuple[int, int]]:
    """(height, index) of the nodes that the leaves [lo, hi) add up to, from left to right."""
    nodes = []
    while lo < hi:
        height = 0
        while lo % (2 << height) == 0 and lo + (2 << height) <= hi:
            height += 1
        nodes.append((height, lo >> height))
        lo += 1 << height
    return nodes
