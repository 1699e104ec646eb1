"""Numbers and dates as people write them into text columns: 1,234.5, 5 %, $10, 31.12.2024, 12/31/2024."""

import re
from typing import Any

from gmn_pipeline.errors import DatasetError

MISSING = ("", "NA", "N/A", "#N/A", "nan", "NaN", "null", "NULL")
"""Texts that stand for no value."""
SAMPLE = 50
"""Values that are looked at first: most columns of text are neither."""
FEW = 20
"""Different texts that may be kinds of things, whatever they look like."""
PLAIN = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"
THOUSANDS = r"^[-+]?\d{1,3}(,\d{3})+(\.\d+)?$"
EUROPEAN = r"^[-+]?(\d+|\d{1,3}(\.\d{3})+(,\d+)?|\d+,\d+)$"
SIGNS = r"^[$€£]\s*|\s*[$€£%]$"
DATE = re.compile(r"^(\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{4})( \d{1,2}:\d{2}(:\d{2})?)?$")
DATES = tuple(
    f"%{first}{sign}%{second}{sign}%{third}"
    for sign in "./-"
    for first, second, third in (("d", "m", "Y"), ("m", "d", "Y"), ("Y", "m", "d"))
)


def read_written(name: str, column: Any, file: str, notes: list[str]) -> Any:
    """The column as numbers or dates if its text is nothing else, with a note; otherwise as it is.

    Raises DatasetError where it could be either of two things, or numbers but for a few.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
    texts = pc.if_else(pc.is_in(texts, value_set=pa.array(MISSING)), None, texts)
    known = texts.drop_null()
    head = known.slice(0, SAMPLE).to_pylist()
    if not head:
        return column
    where = f"column '{name}' of {file}"
    if all(DATE.match(text) for text in head):
        return _read_dates(texts, column, where, notes)
    if sum(bool(re.search(r"\d", text)) for text in head) * 2 <= len(head):
        return column
    bare = pc.replace_substring_regex(texts, SIGNS, "")
    plain, english, european = (pc.match_substring_regex(bare, form) for form in (PLAIN, THOUSANDS, EUROPEAN))
    odd = known.filter(pc.invert(pc.match_substring_regex(known, PLAIN)))
    example = "" if not len(odd) else odd[0].as_py()[:40]
    if pc.all(pc.or_(plain, english)).as_py():
        numbers = pc.replace_substring(bare, ",", "")
    elif pc.all(european).as_py():
        numbers = pc.replace_substring(pc.replace_substring(bare, ".", ""), ",", ".")
    else:
        if 10 * len(odd) < len(known) and pc.count_distinct(known).as_py() > FEW:
            raise DatasetError(
                f"{where} holds numbers, but for {len(odd):,} fields such as '{example}'; leave those empty or write "
                f"them as numbers, or leave the column out with --drop {name}"
            )
        return column
    notes.append(f"{where} is text such as '{example}': read as numbers")
    return numbers.cast(pa.float64())


def _read_dates(texts: Any, column: Any, where: str, notes: list[str]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    days = pc.replace_substring_regex(texts, r" \d{1,2}:\d{2}(:\d{2})?$", "")
    dates_by_form = {}
    for form in DATES:
        read = pc.strptime(days, format=form, unit="s", error_is_null=True)
        if read.null_count == texts.null_count:
            dates_by_form[form] = read
    if not dates_by_form:
        return column
    example = texts.drop_null()[0].as_py()
    if len(dates_by_form) > 1:
        raise DatasetError(f"{where} holds dates such as '{example}', day or month first; write them as 2024-12-31")
    ((form, read),) = dates_by_form.items()
    words = form.replace("%d", "day").replace("%m", "month").replace("%Y", "year")
    notes.append(f"{where} holds dates such as '{example}': read as {words}")
    return read.cast(pa.timestamp("us"))
