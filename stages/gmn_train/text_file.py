"""Pages and tables are replaced in one step, so that a reader never finds half of one."""

from pathlib import Path

from gmn_pipeline.errors import TrainError


def write_text(file: Path, text: str) -> Path:
    """Write a text file, its folder too; TrainError where that cannot be done."""
    aside = file.with_name(file.name + ".part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(text, encoding="utf-8")
        aside.replace(file)
    except OSError as error:
        raise TrainError(f"cannot write {file}: {error.strerror or error}; choose another --out") from None
    return file
