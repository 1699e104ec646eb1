"""The model: selective scan, convolution, bidirectional Mamba, token encoders, and GMN built from them.

source = InputSource(TokenStore.open(path).view(), config)
model = GMN(config, source.facts)
logits = model(whole_inputs(source, epoch=0)).logits
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gmn_train.data.inputs import InputFacts as InputFacts
    from gmn_train.data.inputs import InputSource as InputSource
    from gmn_train.data.inputs import ModelInputs as ModelInputs
    from gmn_train.data.inputs import batch_inputs as batch_inputs
    from gmn_train.data.inputs import whole_inputs as whole_inputs
    from gmn_train.model.baselines.baseline import Baseline as Baseline
    from gmn_train.model.frame import GraphModel as GraphModel
    from gmn_train.model.frame import ModelOutputs as ModelOutputs
    from gmn_train.model.frame import make_graph_model as make_graph_model
    from gmn_train.model.gmn import GMN as GMN
    from gmn_train.model.layers.bimamba import BiMamba as BiMamba
    from gmn_train.settings.model_settings import ModelConfig as ModelConfig

_HOME = {
    "GMN": "model.gmn",
    "Baseline": "model.baselines.baseline",
    "BiMamba": "model.layers.bimamba",
    "GraphModel": "model.frame",
    "InputFacts": "data.inputs",
    "InputSource": "data.inputs",
    "ModelConfig": "settings.model_settings",
    "ModelInputs": "data.inputs",
    "ModelOutputs": "model.frame",
    "batch_inputs": "data.inputs",
    "make_graph_model": "model.frame",
    "whole_inputs": "data.inputs",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    """Loaded when first used: PyG takes seconds to import, and the scan alone does not need it."""
    if name in _HOME:
        return getattr(import_module(f"gmn_train.{_HOME[name]}"), name)
    raise AttributeError(f"module 'gmn_train.model' has no attribute '{name}'")
