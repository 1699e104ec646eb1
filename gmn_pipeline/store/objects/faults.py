"""What went wrong with an object store, in one line that says what to do."""

import re

from gmn_pipeline.errors import StoreCorruptError, StoreError
from gmn_pipeline.place import StoreUrl

AGAIN = "run the same command again: it continues where it stopped"

TOKEN_FAULTS = ("ExpiredToken", "InvalidToken", "TokenRefreshRequired")
"""Told with status 400, as if the request were wrong."""


def explain_fault(url: StoreUrl, name: str, error: Exception) -> StoreError:
    """The user's side of an error of obstore, which tells it in pages of text."""
    text = str(error).split("\n\nDebug source")[0]
    code = next(iter(re.findall(r"<Code>(\w+)</Code>", text)), "")
    status = next(iter(re.findall(r"status code: (\d{3} [A-Za-z ]+)", text)), "")
    where = next(iter(re.findall(r"(https?://[^/\s]+)", text)), "its address")
    if "/latest/" in text or re.search(r"Missing (AccessKeyId|SecretAccessKey)", text):
        return StoreError(
            f"{url} needs credentials and none were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if code == "NoSuchBucket":
        return StoreError(f"{url}: there is no bucket '{url.bucket}' at {where}; create it, or correct the name")
    if code in TOKEN_FAULTS:
        return StoreError(
            f"{url}: {where} refuses these credentials ({code}); get new ones, and set AWS_SESSION_TOKEN with the "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY it belongs to"
        )
    if type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError") or status.startswith(("401", "403")):
        return StoreError(
            f"{url}: {where} refuses these credentials ({code or status or 'no reason given'}); check "
            "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they may do"
        )
    if isinstance(error, FileNotFoundError):
        return StoreCorruptError(f"{url}/{name} is missing; copy the store again, or tokenize to another --out")
    if "response body error" in text:
        return StoreError(
            f"{url}: the connection to {where} was cut while {name} was read, each time it was tried; check the "
            f"network, then {AGAIN}"
        )
    if status.startswith("5"):
        return StoreError(f"{url}: {where} is too busy or out of order ({status}); {AGAIN}")
    if "error sending request" in text or "timed out" in text or "connection" in text.lower():
        return StoreError(f"{url}: {where} cannot be reached; check AWS_ENDPOINT_URL and the network, then {AGAIN}")
    return StoreError(f"{url}/{name}: {code or ' '.join(text.split())[:200]}; check AWS_REGION and AWS_ENDPOINT_URL")
