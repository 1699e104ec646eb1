"""The graph container. Building from edges, checking and PyG are imported when used."""

from gmn_pipeline.graph.container import TEST, TRAIN, VAL, Graph
from gmn_pipeline.graph.settle import id_dtype
from gmn_pipeline.graph.texts import Texts

__all__ = ["TEST", "TRAIN", "VAL", "Graph", "Texts", "id_dtype"]
