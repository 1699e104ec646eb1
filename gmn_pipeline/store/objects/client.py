"""The objects of one store in an S3-compatible object store, through obstore. Every fault is one line.

An object is created once and never changed; only the root's document is replaced, when the store is complete.
"""

import mmap
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar

from gmn_pipeline.errors import StoreClashError, StoreCorruptError, StoreError
from gmn_pipeline.place import StoreUrl
from gmn_pipeline.store.objects.faults import explain_fault

LANES = 16
"""Requests of one process at a time."""
RETRIES = 10
"""Tries after the first, so that a busy server or a short break of the network is waited out."""
LARGEST_PUT = 4 << 30
"""Bytes that one request may carry; S3 allows 5 GiB. Larger objects go in parts."""
PART = 64 << 20
PIECE = 8 << 20
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
ADDRESS = r"https?://(?P<host>[\w.-]+|\[[^\]]+\])(:(?P<port>\d{1,5}))?(/[\w./~-]*)?"

Content = bytes | mmap.mmap
Item = TypeVar("Item")
Made = TypeVar("Made")


class Objects:
    """The objects below a URL, by name, such as `tokens/index/zarr.json`. Safe to use from several threads."""

    def __init__(self, url: StoreUrl) -> None:
        self.url = url
        self._client, self._first = _connect(url, RETRIES, 0.25), _connect(url, 3, 0.1)
        self._pool = ThreadPoolExecutor(LANES, thread_name_prefix="objects")

    def __str__(self) -> str:
        return str(self.url)

    def each(self, work: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
        """`work` on every item, many at a time. The first error ends it."""
        return list(self._pool.map(work, items))

    def root(self) -> bytes | None:
        """The root's document, None where there is none. The first request: a wrong address is told after a second."""
        with self._telling("zarr.json"):
            try:
                return b"".join(self._pieces("zarr.json", client=self._first))
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                return None

    def get(self, name: str, most: int) -> bytes:
        """A whole object of at most `most` bytes."""
        with self._telling(name):
            return b"".join(self._pieces(name, most))

    def fetch(self, name: str, file: Path) -> None:
        """Write an object into a local file."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with self._telling(name), file.open("xb") as out:
            for piece in self._pieces(name):
                out.write(piece)

    def _pieces(self, name: str, most: int | None = None, client: Any = None) -> Iterator[Any]:
        """An object piece by piece. A download that is cut off goes on where it was; obstore itself retries answers."""
        import obstore
        from obstore.exceptions import GenericError

        done = 0
        for attempt in range(RETRIES + 1):
            options: Any = {"range": {"offset": done}} if done else None
            try:
                response = obstore.get(client or self._client, name, options=options)
                size = response.meta["size"]
                if most is not None and size > most:
                    raise StoreCorruptError(f"{self}/{name} has {size:,} bytes, expected at most {most:,}")
                for piece in response.stream(PIECE):
                    done += len(piece)
                    yield piece
                return
            except GenericError as error:
                if "response body error" not in str(error).split("Debug source")[0] or attempt == RETRIES:
                    raise
                time.sleep(min(0.1 * 2**attempt, 10))

    def exists(self, name: str) -> bool:
        import obstore

        with self._telling(name):
            try:
                obstore.head(self._client, name)
            except FileNotFoundError:
                return False
            return True

    def sizes(self, folder: str) -> dict[str, int]:
        """The bytes of every object in a folder and below, by name."""
        import obstore

        with self._telling(folder):
            pages = obstore.list(self._client, prefix=folder or None)
            return {entry["path"]: entry["size"] for page in pages for entry in page}

    def list(self, folder: str) -> list[str]:
        """The names in a folder, sorted; a folder's end with `/`."""
        import obstore

        with self._telling(folder):
            listing = obstore.list_with_delimiter(self._client, prefix=folder or None)
        names = [f"{path}/" for path in listing["common_prefixes"]] + [entry["path"] for entry in listing["objects"]]
        return sorted(name.removeprefix(f"{folder}/") for name in names)

    def create(self, name: str, content: Content) -> None:
        """Create an object, if there is none. StoreClashError where there is one with other bytes."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        with self._telling(name):
            try:
                if len(content) <= LARGEST_PUT:
                    obstore.put(self._client, name, content, mode="create")
                    return
                if not self.exists(name):
                    obstore.put(self._client, name, content, use_multipart=True, chunk_size=PART)
                    return
            except AlreadyExistsError:
                pass
            if not self._holds(name, content):
                raise StoreClashError(
                    f"{self}/{name} was written by someone else, with other content; choose another place, or remove "
                    "what is there"
                )

    def replace(self, name: str, content: bytes) -> None:
        """Put new bytes into an object that nobody else changes meanwhile. StoreClashError where somebody does."""
        import obstore
        from obstore.exceptions import PreconditionError

        with self._telling(name):
            tag = obstore.head(self._client, name)["e_tag"]
            if self._holds(name, content):
                return
            try:
                obstore.put(self._client, name, content, mode={"e_tag": tag})
            except PreconditionError:
                if not self._holds(name, content):
                    raise StoreClashError(f"{self}/{name} was changed by someone else meanwhile; run again") from None

    def _holds(self, name: str, content: Content) -> bool:
        place = 0
        for piece in self._pieces(name):
            if content[place : place + len(piece)] != bytes(piece):
                return False
            place += len(piece)
        return place == len(content)

    @contextmanager
    def _telling(self, name: str) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, FileNotFoundError) as error:
            raise explain_fault(self.url, name, error) from None


def endpoint() -> str | None:
    """The address of the object store, where it is not Amazon's own."""
    return next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), None)


def _check_variables() -> None:
    """StoreError for what would make obstore panic. An empty address is none, as for Amazon's own tools."""
    for name, value in os.environ.items():
        if name.startswith("AWS_") and not (value.isascii() and value.isprintable()):
            raise StoreError(f"{name} holds a line end or another character that it cannot have; set it again")
    for name in ENDPOINTS:
        if os.environ.get(name) == "":
            del os.environ[name]
    address = endpoint()
    if address is not None and not _is_address(address):
        raise StoreError(f"AWS_ENDPOINT_URL is '{address}'; write an address such as https://s3.example.org")


def _is_address(text: str) -> bool:
    parts = re.fullmatch(ADDRESS, text, re.ASCII)
    if parts is None or int(parts["port"] or 1) not in range(1, 1 << 16):
        return False
    host = parts["host"].strip("[]")
    try:
        return bool(ip_address(host))
    except ValueError:  # a name, unless it looks like numbers
        return ":" not in host and not host.split(".")[-1].isdigit()


def _connect(url: StoreUrl, retries: int, pause: float) -> Any:
    """A client; nothing is sent yet. Credentials and region come from AWS_* variables, or from the machine's role."""
    try:
        from obstore.exceptions import BaseError
        from obstore.store import S3Store
    except ImportError:
        raise StoreError(
            f"{url} is in an object store, which needs obstore; install it with pip install 'gmn-pipeline[s3]'"
        ) from None
    _check_variables()
    address = endpoint()
    options: dict[str, Any] = {
        "allow_http": (address or "").startswith("http://"),
        "timeout": timedelta(hours=2),  # of a whole request, so of the largest object
        "read_timeout": timedelta(seconds=60),
    }
    backoff = {"init_backoff": timedelta(seconds=pause), "max_backoff": timedelta(seconds=15), "base": 3}
    try:
        return S3Store(
            url.bucket,
            prefix=url.prefix,
            client_options=options,
            retry_config={"max_retries": retries, "backoff": backoff, "retry_timeout": timedelta(minutes=3)},
            **({} if address is None else {"endpoint": address}),
        )
    except BaseError as error:
        raise explain_fault(url, "", error) from None
