"""What `--task` may ask of a dataset of the table: its own task, or links where nodes have labels."""

from gmn_pipeline.errors import DatasetError
from gmn_pipeline.metrics import metrics_of
from gmn_prep.datasets.entry import Dataset, DatasetOptions
from gmn_prep.datasets.user.user_task import parse_task

SHARES = (0.85, 0.05)
"""Of the edges of a link task, for training and for validation."""
TRAINING_TARGETS = 0.3
"""Of the training edges: the others stay in the graph, and are not asked for."""


def wants_links(dataset: Dataset, options: DatasetOptions) -> bool:
    """Whether links are to be predicted instead of the dataset's labels. Raises DatasetError for what it has not."""
    item, kind = parse_task(options.task)
    own = dataset.predicts
    if item in (None, own.item) and kind in (None, own.kind):
        return False
    if (item, own.item) == ("link", "node") and kind in (None, "binary"):
        return True
    allowed = f"{own.item}-{own.kind}" + (", link" if own.item == "node" else "")
    raise DatasetError(f"--task {options.task} does not fit {dataset.name}; allowed: {allowed}")


def link_metric(options: DatasetOptions) -> str:
    """How held-out links are judged. Raises DatasetError for a metric that does not fit."""
    metric = options.metric or "roc_auc"
    allowed = metrics_of("binary")
    if metric not in allowed:
        raise DatasetError(f"metric '{metric}' does not fit a link task; allowed: {', '.join(allowed)}")
    return metric
