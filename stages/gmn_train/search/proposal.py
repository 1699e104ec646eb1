"""From the space to the settings of one trial. No torch here."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gmn_pipeline.console.config import as_table, flatten, walk_fields
from gmn_pipeline.errors import ConfigError, nearest
from gmn_pipeline.recipes import NO_RECIPE
from gmn_pipeline.store.files.manifest_file import read_manifest
from gmn_pipeline.store.format.manifest import Manifest
from gmn_train.model.tables import CONTROL, MODELS
from gmn_train.search.space import DIMENSIONS, STARTS, Choice, Dimension, Range, Settings, Start
from gmn_train.settings.request import Request, read_request
from gmn_train.settings.run_settings import TrainConfig

if TYPE_CHECKING:
    from optuna import Trial

Pick = Callable[[Dimension, Choice | Range], Any]
"""A value of a dimension, given all it may take."""


@dataclass(frozen=True)
class Proposals:
    """The space of one study: what is free, around the settings that the user asked for."""

    given: Settings
    """What the user fixed, by dotted key."""
    base: Settings
    """All settings of the plain run."""
    manifest: Manifest
    dimensions: tuple[Dimension, ...]

    @classmethod
    def of(cls, request: Request, over: tuple[str, ...] = ()) -> "Proposals":
        """over: keys to search; all that the user did not fix where there are none. ConfigError for an unknown one."""
        known = [key for key, _ in walk_fields(TrainConfig)]
        for dimension in DIMENSIONS.values():
            if dimension.name not in known:
                raise ConfigError(
                    f"the search dimension '{dimension.name}' is no setting{nearest(dimension.name, known)}"
                )
        for key in over:
            if key not in DIMENSIONS:
                raise ConfigError(
                    f"--over names '{key}', which is not searched{nearest(key, list(DIMENSIONS))}; "
                    f"allowed: {', '.join(DIMENSIONS)}"
                )
            if key in request.given:
                raise ConfigError(f"--over names {key}, and the command fixes it; leave one of them out")
        free = [d for d in DIMENSIONS.values() if d.name not in request.given and (not over or d.name in over)]
        if not free:
            raise ConfigError("nothing is left to search, because the command fixes every setting; leave some out")
        manifest = read_manifest(request.config.store)
        return cls(request.given, flatten(as_table(request.config)), manifest, tuple(free))

    @property
    def compares(self) -> bool:
        """Whether the control is one of the models tried."""
        return any(d.name == "model.name" for d in self.dimensions) and self.base["model.name"] != CONTROL

    def draw(self, trial: "Trial") -> dict[str, Any]:
        """The settings that a trial tries, by dotted key."""

        def pick(dimension: Dimension, values: Choice | Range) -> Any:
            if isinstance(values, Choice):
                return json.loads(trial.suggest_categorical(dimension.name, [json.dumps(v) for v in values.values]))
            if isinstance(values.low, int) and isinstance(values.high, int):
                return trial.suggest_int(dimension.name, values.low, values.high, log=values.log)
            return float(f"{trial.suggest_float(dimension.name, values.low, values.high, log=values.log):.2g}")

        return self._walk(pick)

    def starts(self) -> list[tuple[Start, dict[str, Any]]]:
        """Every start with its parameters, as a trial would draw them; starts that are the same only once."""
        starts_by_params: dict[str, tuple[Start, dict[str, Any]]] = {}
        for start in STARTS.values():
            params = self.parameters(start.settings, self.plain_settings(start.settings.get("model.name")))
            starts_by_params.setdefault(json.dumps(params, sort_keys=True), (start, params))
        return list(starts_by_params.values())

    def plain_settings(self, model: str | None) -> Settings:
        """All settings of the plain run with another model: defaults that follow from the data may differ."""
        if model is None or model == self.base["model.name"]:
            return self.base
        return flatten(as_table(self.request({"model.name": model}).config))

    def parameters(self, settings: Settings, base: Settings | None = None) -> dict[str, Any]:
        """The parameters of a trial that tries these settings, on top of `base`: the plain run's unless given."""
        below = self.base if base is None else base

        def pick(dimension: Dimension, values: Choice | Range) -> Any:
            value = settings.get(dimension.name, below.get(dimension.name))
            return max(value, values.low) if isinstance(values, Range) else value  # 0 where logarithms are drawn

        return {key: self._encode(key, value) for key, value in self._walk(pick).items()}

    def _encode(self, key: str, value: Any) -> Any:
        return json.dumps(value) if isinstance(self._values(DIMENSIONS[key]), Choice) else value

    def _walk(self, pick: Pick) -> dict[str, Any]:
        """The dimensions in their order, each where it means something."""
        settings, drawn = dict(self.base), dict[str, Any]()
        for dimension in self.dimensions:
            fixed = {f"model.{key}" for key in MODELS[settings["model.name"]].fixes}
            if dimension.name in fixed or not dimension.when(settings, self.manifest):
                continue
            value = pick(dimension, self._values(dimension))
            settings[dimension.name] = drawn[dimension.name] = value
            if dimension.name == "model.name":
                settings |= {f"model.{key}": fixed for key, fixed in MODELS[value].fixes.items()}
        return drawn

    def _values(self, dimension: Dimension) -> Choice | Range:
        """What the dimension may take, the values of all starts and of the plain run among them."""
        values = dimension.values_for(self.manifest)
        more = [start.settings[dimension.name] for start in STARTS.values() if dimension.name in start.settings]
        more += [self.base[dimension.name]] if dimension.name in self.base else []
        if isinstance(values, Choice):
            return Choice(*values.values, *(v for v in dict.fromkeys(map(_hashable, more)) if v not in values.values))
        more = [value for value in more if value > 0 or not values.log]
        return Range(min(values.low, *more), max(values.high, *more), values.log) if more else values

    def request(self, drawn: Mapping[str, Any], **more: Any) -> Request:
        """The request that these settings make: what was drawn over what the user gave. more: epochs, seed.

        Raises ConfigError where they cannot be, or where a model is the control in all but name.
        """
        name = str(drawn.get("model.name", self.base["model.name"]))
        undone = {f"model.{key}" for key in MODELS[name].fixes}
        given = {key: value for key, value in self.given.items() if key not in undone}
        request = read_request({**given, **drawn, **more})
        model = request.config.model
        idle = model.model.code == MODELS["gmn"].code and not model.node_scan and "tokens" not in model.reads
        if idle and name != CONTROL:
            raise ConfigError(f"{name} with these settings reads no tokens and scans no nodes: it is the control")
        return request

    def plain(self, config: TrainConfig) -> TrainConfig:
        """The settings of a run of that model without any recipe, and without what the user gave."""
        return read_request({"store": config.store, "recipe": NO_RECIPE, "model.name": config.model.name}).config


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
