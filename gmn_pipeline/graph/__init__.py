"""The graph container. Building from edges, checking and PyG are imported when used."""

from gmn_pipeline.graph.container import TEST, TRAIN, VAL, Graph, id_dtype

__all__ = ["TEST", "TRAIN", "VAL", "Graph", "id_dtype"]
