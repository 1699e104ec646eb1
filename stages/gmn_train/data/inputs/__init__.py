"""What a model takes, and how it is built from a view of a token store.

source = InputSource(view, config, seed=0)      opened once
inputs = whole_inputs(source, epoch=3)          all nodes of all graphs, or of those asked for
inputs = batch_inputs(source, node_ids)         some nodes of one large graph
"""

from gmn_train.data.inputs.batch import batch_inputs
from gmn_train.data.inputs.record import InputFacts, ModelInputs, to_device
from gmn_train.data.inputs.source import InputSource
from gmn_train.data.inputs.whole import whole_inputs

__all__ = ["InputFacts", "InputSource", "ModelInputs", "batch_inputs", "to_device", "whole_inputs"]
