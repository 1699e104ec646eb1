"""Names of the arrays' dimensions, in the Zarr metadata: with them xarray opens every group. Our readers need none.

Within a group, dimensions of one name have one size.
"""

DIMENSIONS: dict[str, tuple[str, ...]] = {
    "graph/indptr": ("node_border",),
    "graph/indices": ("slot",),
    "graph/x": ("node", "feature"),
    "graph/edge_attr": ("slot", "edge_feature"),
    "graph/y": ("item", "target"),
    "graph/splits": ("split", "item"),
    "graph/graph_ptr": ("graph_border",),
    "graph/pairs": ("item", "end"),
    "graph/node_id_ptr": ("node_border",),
    "graph/node_id_bytes": ("node_id_byte",),
    "graph/graph_id_ptr": ("graph_border",),
    "graph/graph_id_bytes": ("graph_id_byte",),
    "encodings/laplacian/vectors": ("node", "component"),
    "encodings/laplacian/values": ("graph", "component"),
    "encodings/laplacian/residuals": ("graph", "component"),
    "encodings/random_walk/values": ("node", "step"),
    "encodings/random_walk/stderr": ("node", "step"),
    "orderings/*/permutation": ("place",),
    "orderings/*/ranks": ("node",),
    "tokens/index/block_ptr": ("block_border",),
    "tokens/*/nodes": ("token_node",),
    "tokens/*/node_ptr": ("token_border",),
    "tokens/*/edges": ("token_edge", "end"),
    "tokens/*/edge_ptr": ("token_border",),
    "tokens/*/edge_slots": ("token_edge", "direction"),
    "tokens/*/walks": ("node", "walk_entry"),
    "tokens/*/sizes": ("token", "walks_taken"),
    "tokens/*/edge_sizes": ("token", "walks_taken"),
}
"""By array; `*` is any group."""


def dimension_names(group: str, name: str, axes: int) -> tuple[str, ...]:
    """The names of one array's dimensions; of an array that is not listed, `NAME_0`, `NAME_1`, ..."""
    parent = group.partition("/")[0]
    known = DIMENSIONS.get(f"{group}/{name}") or DIMENSIONS.get(f"{parent}/*/{name}") or ()
    return known[:axes] if len(known) >= axes else tuple(f"{name}_{axis}" for axis in range(axes))
