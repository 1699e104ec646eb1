"""Run a dataset library's loader without its prompts, prints, warnings, update checks and endless waits."""

import builtins
import contextlib
import io
import socket
import sys
import threading
import urllib.request
import warnings
from collections.abc import Iterator
from urllib.parse import urlsplit

SECONDS = 10.0


def unreachable(url: str, seconds: float = SECONDS) -> str | None:
    """Why the host of `url` cannot be reached, or None if it can.

    Asked before the loader is imported, so that a machine without network says so at once. A name lookup has
    no timeout of its own, so it runs in a thread that is left behind. Behind a proxy only the loader itself
    can tell.
    """
    parts = urlsplit(url)
    if urllib.request.getproxies().get(parts.scheme):
        return None
    answer: list[str | None] = [f"no answer from {parts.hostname} in {seconds:.0f} s"]

    def connect() -> None:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            with socket.create_connection((parts.hostname, port), timeout=seconds):
                answer[0] = None
        except OSError as error:
            answer[0] = f"{parts.hostname}: {error.strerror or error}"

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(seconds)
    return answer[0]


@contextlib.contextmanager
def quiet_loader(*, downloading: bool) -> Iterator[None]:
    """Surroundings in which a loader may run.

    Its prints are swallowed, or go to stderr while it downloads; questions are answered yes (asking for a
    dataset is asking for its download); a connection that stalls fails; ogb's check for a newer ogb is
    skipped.
    """
    output = sys.stderr if downloading else io.StringIO()
    ask, timeout, outdated = builtins.input, socket.getdefaulttimeout(), sys.modules.get("outdated")
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(contextlib.redirect_stdout(output))
        stack.enter_context(contextlib.redirect_stderr(output))
        builtins.input = lambda _prompt="": "y"
        socket.setdefaulttimeout(SECONDS)
        # ogb starts a thread at import that asks PyPI for the latest version; without network it delays our
        # exit.
        sys.modules["outdated"] = None  # type: ignore[assignment]
        try:
            yield
        finally:
            builtins.input = ask
            socket.setdefaulttimeout(timeout)
            if outdated is None:
                del sys.modules["outdated"]
            else:
                sys.modules["outdated"] = outdated
