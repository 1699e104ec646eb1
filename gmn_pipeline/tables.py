"""Tables of named parts: models, token encoders, encodings, orderings, metrics.

An entry says what the part is and where its code lies; the code is imported when it is first used. So a table costs
nothing to import, and names are checked before torch or Numba are loaded.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Protocol, TypeVar

from gmn_pipeline.errors import ConfigError, nearest


class Named(Protocol):
    """What every entry has."""

    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=Named)


class Table(Mapping[str, Entry]):
    """Entries by name, in the order they were given. `add` takes further ones, also from outside the package."""

    def __init__(self, what: str, entries: Iterable[Entry] = ()) -> None:
        """what: the kind of part, as error messages call it."""
        self.what = what
        self._entries: dict[str, Entry] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> Entry:
        """Take a further entry; ConfigError if its name is taken."""
        if entry.name in self._entries:
            raise ConfigError(f"there is already a {self.what} '{entry.name}'; choose another name")
        self._entries[entry.name] = entry
        return entry

    def find(self, name: str) -> Entry:
        """The entry of that name, in upper or lower case; ConfigError names the nearest if there is none."""
        for known, entry in self._entries.items():
            if known.lower() == name.lower():
                return entry
        raise ConfigError(f"there is no {self.what} '{name}'; allowed: {', '.join(self)}{nearest(name, list(self))}")

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def load_code(place: str | Callable[..., Any]) -> Any:
    """What `package.module:name` names, imported now; a function is given back as it is."""
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
