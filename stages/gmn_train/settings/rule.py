"""The defaults that depend on the data: one rule, from a few facts of the store to settings that nobody gave.

docs/decisions/0011-defaults.md has the runs that each line was chosen by, and what was not tried.
"""

from collections.abc import Collection
from typing import Any

from gmn_train.settings.data_facts import DataFacts
from gmn_train.settings.run_settings import Mode, TrainConfig

LARGE_GRAPH = 50_000
"""Nodes of a graph beyond which one step per epoch learns too slowly: ogbn-arxiv in full steps was at accuracy 0.018
after 300 s, in batches at 0.737 after 162 s (two cores, stand-in features)."""
SCHEDULES: dict[Mode, dict[str, Any]] = {
    "full": {"epochs": 500, "lr": 0.005, "warmup": 10},
    "batch": {"epochs": 30, "lr": 0.002, "warmup": 1},
    "graphs": {"epochs": 100, "lr": 0.001, "warmup": 10},
}
"""By mode: many steps per epoch need fewer epochs and a lower rate."""
PATIENCE = 100
"""Epochs of one step each. Small sets are at their best within 30 epochs, large ones need hundreds: message passing on
`atoms` had validation 0.837 after 200 epochs, 0.917 after 500."""
EVALUATIONS = 200
"""Of a run, at most about twice as many. One costs a third of a step over the same nodes."""
HOMOPHILOUS = 0.3
"""Adjusted homophily above which neighbours mostly share their class."""
SHORT = 3
"""Levels of tokens that a scan's convolution carries to the last position. From farther ones `last` learns slowly: on
ring-transfer it stood at a loss of 1.17 after 21 epochs, `both-ends` at 0.26 after 9."""
SOME_HOMOPHILY = 0.1
"""The same where there are few labels: few edges join two of them, so the measure is noisy."""
FEW_LABELS = 1000
"""Training items below which a lower rate is better."""
ALIKE: dict[str, Any] = {
    "model.residual": "none",
    "model.norm": "none",
    "model.node_layers": 2,
    "model.width": 256,
    "model.dropout": 0.5,
    "model.input_dropout": 0.8,
    "model.head_reads": "last",
    "model.head_layers": 0,
}
"""Where neighbours share their class and labels are not many: as little to learn by heart as can be. Message passing
on Cora, 140 labels, four random splits: validation 0.758 with LayerNorm, a hidden layer in the head and half of the
feature values hidden, 0.793 without the first two, 0.806 with four of five hidden, 0.812 with nine of ten; on PubMed
0.791 and 0.784 with these two. Cora with 1,600 labels: 0.887, 0.876 before; CiteSeer with 2,000: 0.772 and 0.746.
Width 256 instead of 64, five splits: GMN on Cora 0.813 and 0.799, on CiteSeer 0.686 and 0.673."""
HIDDEN_SHARE = 0.5
"""Of the feature values, hidden in training, where GMN reads many columns of a few thousand nodes that are no likelier
to share their neighbours' class. On Actor, three splits, its validation was 0.380 with it and 0.372 without, test 0.357
and 0.350; message passing alone has 0.380 and 0.369, and does not gain by it."""
TOKENS_AVERAGED: dict[str, Any] = {
    "model.encoder": "mean",
    "model.token_layers": 0,
    "model.readout": "mean",
}
"""In the same place: a scan of tokens learns them by heart. GMN on movies (IMDB, 1,765 labels), three splits:
validation 0.704 so, 0.672 with the other settings and a scan."""
WIDE = 128
"""Features per node where columns and training items are many. Message passing on `atoms` had validation 0.860 after
120 epochs, 0.800 with 64, in three times the seconds."""
LARGE_SET = 5000
"""Training items from which WIDE pays. On Actor, with 3,648, it was level for message passing and worse for GMN."""
SMALL_SET = 2000
"""Training items of many columns below which a head that reads every layer learns features by heart. Validation on
Chameleon-filtered, five splits: 0.446 with such a head, 0.485 with the last layer alone; GMN 0.471 and 0.491."""
DEEP = 12
"""Layers where columns are few. Minesweeper's control had validation 0.938 with 6 and 0.964 with 12, that of `workers`
0.867 and 0.868."""
MANY_GRAPHS: dict[str, Any] = {"model.dropout": 0.0, "batch_size": 16}
"""Message passing alone on 3,000 peptides: validation 0.498 with dropout 0.1 and 64 graphs per step, 0.511 with 16,
0.529 with 16 and no dropout. On three other sets of graphs both were better, too, on one level."""
LINKED_SHARE = 0.5
"""Of the feature values, hidden in training, where pairs of nodes are told apart by many columns. Links of Actor:
validation 0.868 with it, 0.808 without; message passing alone 0.857 and 0.815."""
MANY_COLUMNS = 32
"""Numbers per node from which a model can tell training nodes apart by heart."""


def choose_mode(nodes: int) -> Mode:
    """Of one graph."""
    return "batch" if nodes > LARGE_GRAPH else "full"


def choose_settings(facts: DataFacts, given: TrainConfig, taken: Collection[str] = ()) -> dict[str, Any]:
    """By dotted key, the defaults for such data, beside the settings that were given.

    taken: keys that a recipe, a model or the user decides. They go first; settings that only make sense together are
    chosen together or not at all.
    """
    mode = given.mode or ("graphs" if facts.many else choose_mode(facts.nodes))
    # Hiding features was only seen to help on Minesweeper, whose features are mostly hidden anyway.
    chosen: dict[str, Any] = {"model.feature_mask": 0.0}
    if facts.edge_features:
        chosen["model.mpnn"] = "gine"  # the class's default does not read them
    if facts.repeats > 1:
        # Drawn anew each epoch, so that no draw is learned by heart: Minesweeper's validation was 0.934 with one repeat
        # stored, below message passing alone (0.939), and 0.949 with one drawn from four.
        chosen["s"] = 1
    if facts.item == "node" and not facts.many:
        chosen |= _one_graph(facts, mode, taken)
        if given.model.mpnn != "none" and given.model.mpnn_form == "sum":
            chosen["model.node_scan"] = False  # it doubles the seconds, and validation was the same
    if facts.item == "link" and not facts.many:
        chosen |= _links_of_one_graph(facts, mode, taken)
    if facts.many:
        chosen |= MANY_GRAPHS
        # 1,000 small graphs of MalNet without features, three splits: validation 0.936 with it, 0.922 without.
        chosen["model.degree_profile"] = facts.bare
    layers = given.model.node_layers
    if "model.node_layers" not in taken:
        layers = chosen.get("model.node_layers", layers)
    if layers > 2:
        chosen["model.token_blocks"] = 2  # after every second layer: half the cost of every one
    elif layers < 2 and not {"model.token_blocks", "model.token_layers"} & set(taken):
        chosen |= {"model.token_blocks": "input", "model.token_layers": 2}  # between layers there is no place
    if given.model.name == "gmn":
        if _alike(facts) and not set(TOKENS_AVERAGED) & set(taken):
            chosen |= TOKENS_AVERAGED
        if _thousands_unlike(facts):
            chosen["model.input_dropout"] = HIDDEN_SHARE
    return {key: value for key, value in chosen.items() if key not in taken}


def _one_graph(facts: DataFacts, mode: Mode, taken: Collection[str]) -> dict[str, Any]:
    """Nodes of one graph. With enough labels the head reads every layer, so that more layers than needed do no harm."""
    chosen: dict[str, Any] = {"model.head_reads": "all", "model.dropout": 0.2, "model.states": 8}  # short sequences
    if facts.levels > SHORT:
        chosen["model.readout"] = "both-ends"
    if mode == "full" and not {"epochs", "patience"} & set(taken):
        chosen["patience"] = PATIENCE
    if facts.columns < MANY_COLUMNS:  # what matters is counted in the surroundings: BatchNorm keeps amounts apart
        deep = {"lr": 0.01, "model.node_layers": DEEP} if mode == "full" else {}
        return chosen | {"model.norm": "batch", "weight_decay": 0.01} | deep
    slow = facts.train < FEW_LABELS or mode == "batch"
    chosen |= {"model.norm": "layer", "weight_decay": 0.1, "lr": 0.002 if slow else 0.005}
    if _alike(facts):
        return chosen | ALIKE
    if facts.train < SMALL_SET:
        chosen["model.head_reads"] = "last"
    if facts.train >= LARGE_SET and mode == "full":
        chosen["model.width"] = WIDE
    if (facts.homophily or 0.0) > HOMOPHILOUS:  # many labels, then
        chosen["model.residual"] = "none"  # neighbours stand for a node, not beside it
    return chosen


def _links_of_one_graph(facts: DataFacts, mode: Mode, taken: Collection[str]) -> dict[str, Any]:
    """Pairs of nodes of one graph: at their best after 10 to 160 epochs of one step."""
    chosen: dict[str, Any] = {"model.states": 8, "model.node_scan": False}
    if mode == "full" and not {"epochs", "patience"} & set(taken):
        chosen["patience"] = PATIENCE
    if facts.columns >= MANY_COLUMNS:
        chosen["model.input_dropout"] = LINKED_SHARE
    return chosen


def _alike(facts: DataFacts) -> bool:
    """Many columns, not many labels, and neighbours that share their class, as they mostly do where labels are few."""
    if facts.item != "node" or facts.many or facts.columns < MANY_COLUMNS or facts.train >= LARGE_SET:
        return False
    few = facts.train < FEW_LABELS
    if facts.homophily is None:
        return few
    return facts.homophily > (SOME_HOMOPHILY if few else HOMOPHILOUS)


def _thousands_unlike(facts: DataFacts) -> bool:
    """Some thousand labels, many columns, and neighbours that do not share their class."""
    unlike = facts.homophily is not None and facts.homophily <= HOMOPHILOUS  # known for classes of one graph's nodes
    return unlike and not facts.many and facts.columns >= MANY_COLUMNS and SMALL_SET <= facts.train < LARGE_SET
