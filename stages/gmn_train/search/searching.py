"""The story of `gmn-train search`: trials until the time is nearly over, the best repeated, a recipe and a page."""

from dataclasses import dataclass, replace
from pathlib import Path

from gmn_pipeline.console.config import identity
from gmn_pipeline.errors import StoppedError, TrainError
from gmn_pipeline.store.format.digests import digest_of
from gmn_train.machine.compute import use_threads
from gmn_train.runs.start import open_store
from gmn_train.runs.termination import Termination
from gmn_train.runs.watching.estimate import estimate_run
from gmn_train.search.budget import TimeBudget
from gmn_train.search.progress import SearchDisplay
from gmn_train.search.proposal import Proposals
from gmn_train.search.recipe_file import write_recipe
from gmn_train.search.study import SearchStudy, storage_errors
from gmn_train.search.under_way import Search
from gmn_train.search.verdict import Verdict, find_finalists, judge_finalists
from gmn_train.settings.request import Request
from gmn_train.train import Training

SEARCHES = Path("data") / "searches"


@dataclass(frozen=True)
class SearchOutcome:
    """What stands when a search ends."""

    folder: Path
    verdict: Verdict | None
    metric: str
    trials: dict[str, int]
    """How many are complete, cut short, failed."""
    epochs: int
    splits: tuple[int, ...]
    """Validation is the mean over these."""
    recipe: Path | None
    page: Path | None


def search(
    request: Request,
    budget: TimeBudget,
    display: SearchDisplay,
    *,
    command: str,
    over: tuple[str, ...] = (),
    splits: tuple[int, ...] = (),
    name: str | None = None,
    storage: str | None = None,
    trials: int | None = None,
    out: Path | None = None,
) -> SearchOutcome:
    """Search around a request. Ctrl-C and SIGTERM come through when what stands is written.

    over: keys to search; all by default. splits: a trial counts by its mean over these; the request's by default.
    name: of the study, in data/searches. storage: a URL that several machines share. trials: how many the study shall
    have in all, at most. out: the recipe; recipe.toml in the study by default.
    """
    proposals = Proposals.of(request, over)
    config = request.config
    splits = splits or (config.split,)
    use_threads(config.threads)
    store = open_store(config)
    training = Training.prepare(config, store)  # a mistake is reported before anything is written
    task = training.sampler.data.task
    free = () if "epochs" in request.given else ("epochs",)
    where = {} if splits == (config.split,) else {"splits": splits}
    digest = digest_of({**identity(config, without=free), "over": [d.name for d in proposals.dimensions], **where})
    folder = SEARCHES / (name or f"{config.store.stem}-{digest[:8]}")
    with storage_errors(storage or str(folder / "study.db")), display, Termination() as termination:
        study = SearchStudy.open(
            folder, storage, proposals, digest=digest, higher=task.higher_is_better, seed=config.seed,
            plan_epochs=lambda: plan_epochs(request, training, budget, len(splits)),
        )  # fmt: skip
        epochs, schedule = study.epochs, shorten_schedule(request, study.epochs)
        note = "" if epochs == config.epochs else f" (a run has {config.epochs}: the budget holds fewer)"
        display.say(f"{folder}: {len(proposals.dimensions)} settings, trials of {epochs} epochs{note}")
        under_way = Search(
            study, store, folder, budget, display, epochs, schedule, trials, termination, config.seed, splits
        )
        under_way.tell_best()
        ended: BaseException | None = None
        try:
            under_way.run_trials()
            under_way.repeat_finalists()
        except (KeyboardInterrupt, StoppedError) as error:
            ended = error
        outcome = _write(under_way, command, out, task.metric)
    if isinstance(ended, StoppedError):
        raise StoppedError(f"stopped by SIGTERM; {folder} holds what stands: run the same command again to continue")
    if ended is not None:
        raise ended
    if outcome.verdict is None:
        raise TrainError(f"no trial was finished in {budget.seconds:.0f} s; give a larger --budget, or fewer --epochs")
    return outcome


def _write(under_way: Search, command: str, out: Path | None, metric: str) -> SearchOutcome:
    """The recipe and the page of what stands."""
    from gmn_train.search.page import write_page

    study, folder = under_way.study, under_way.folder
    finalists = find_finalists(study)
    verdict = judge_finalists(finalists, higher=study.higher)
    counts = {state: len(study.trials(state)) for state in ("COMPLETE", "PRUNED", "FAIL")}
    outcome = SearchOutcome(folder, verdict, metric, counts, under_way.epochs, under_way.splits, None, None)
    if verdict is None:
        return outcome
    config = under_way.resolve(verdict.chosen.settings, under_way.seed)[0]
    plain = study.proposals.plain(config)
    recipe = write_recipe(out or folder / "recipe.toml", outcome, config, plain, command)
    outcome = replace(outcome, recipe=recipe)
    return replace(outcome, page=write_page(folder / "report.html", outcome, study, finalists, command))


def plan_epochs(request: Request, training: Training, budget: TimeBudget, splits: int) -> int:
    """Of each trial: what the user says, or as many as the budget holds of those planned."""
    planned = request.config.epochs
    assert planned is not None
    if "epochs" in request.given:
        return planned
    estimate = estimate_run(training)
    return budget.epochs(planned, None if estimate is None else estimate.seconds_per_epoch * splits)


def shorten_schedule(request: Request, epochs: int) -> dict[str, int]:
    """The schedule of fewer epochs: the warm-up shrinks too, else trials are judged before their rate has risen."""
    planned, warmup = request.config.epochs, request.config.warmup
    assert planned is not None
    if epochs >= planned or "warmup" in request.given or not warmup:
        return {"epochs": epochs}
    return {"epochs": epochs, "warmup": max(round(warmup * epochs / planned), 1)}
