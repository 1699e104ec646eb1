"""Lists of seeds and splits as users write them."""

from gmn_pipeline.errors import ConfigError


def parse_numbers(text: str | None, what: str) -> list[int]:
    """`0,1,5-8` as a list of numbers, empty where nothing was given; ConfigError where it is no list."""
    numbers: list[int] = []
    for part in text.split(",") if text is not None else ():
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ConfigError(f"--{what} is '{text}'; give numbers and ranges, such as 0,1,2 or 0-9")
        numbers += range(int(first), int(last or first) + 1)
    return numbers
