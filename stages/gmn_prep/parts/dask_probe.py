"""Whether a Dask scheduler answers at an address.

Dask's client waits for ever at a port where another server listens, and takes its greeting for the size of a message.
So one question is asked first, with a deadline.
"""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from socket import create_connection
from typing import Any

ANSWER_SECONDS = 10


def why_no_scheduler(address: str) -> str | None:
    """What is wrong with the scheduler at `address`; None where one answers. Takes ten seconds at most."""
    host, port = re.sub(r"^\w+://", "", address).rsplit(":", 1)
    try:  # Dask would try a refused connection on and on
        create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:  # a port too large is the other
        return " ".join(str(error).split())[:120] or type(error).__name__
    with ThreadPoolExecutor(1) as pool:  # a notebook's thread has an event loop of its own
        return pool.submit(asyncio.run, _ask(address)).result()


async def _ask(address: str) -> str | None:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            kind = (await _identity(address)).get("type")
    except TimeoutError:
        return f"the server there gives no Dask answer within {ANSWER_SECONDS} s"
    except (Exception, MemoryError):  # whatever bytes that are no message of Dask's lead to
        return "the server there does not speak Dask's protocol"
    return None if kind == "Scheduler" else f"a Dask {str(kind).lower()} is there, not the scheduler"


async def _identity(address: str) -> dict[str, Any]:
    from distributed.comm import connect
    from distributed.security import Security

    comm = await connect(
        address if "://" in address else f"tcp://{address}",
        timeout=ANSWER_SECONDS,
        **Security().get_connection_args("client"),
    )
    try:
        await comm.write({"op": "identity", "reply": True})
        answer: dict[str, Any] = await comm.read()
        return answer
    finally:
        comm.abort()
