"""A real S3 server on loopback (moto's), behind a proxy that can fail as networks do."""

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request, urlopen

BUCKET = "bucket"


class FaultyProxy(ThreadingHTTPServer):
    """Passes requests on to a server, and keeps a list of them."""

    daemon_threads = True

    def __init__(self, server: tuple[str, int]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = server
        self.reset()

    def reset(self) -> None:
        self.log: list[tuple[str, str]] = []
        """Method and path of each request that was passed on."""
        self.busy = self.cut_uploads = self.cut_downloads = 0
        """Requests still to be answered by 503, and bodies still to be cut off in the middle."""
        self.refusal = ""
        """A code of S3 that every request is refused with, by status 400."""
        self.delay = 0.0
        """Seconds before each answer."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def paths(self, method: str) -> list[str]:
        """The keys of requests of one kind, without the bucket."""
        prefix = f"/{BUCKET}/"
        return [path.removeprefix(prefix) for kind, path in self.log if kind == method and path.startswith(prefix)]

    def wait_for(self, method: str, count: int) -> None:
        while len(self.paths(method)) < count:
            time.sleep(0.002)

    def require_credentials(self, wanted: bool) -> None:
        """Whether the server looks at credentials, none of which it knows."""
        self._call("POST", "/moto-api/reset-auth", b"0" if wanted else b"inf")

    def put(self, key: str, content: bytes) -> None:
        self._call("PUT", f"/{BUCKET}/{key}", content)

    def _call(self, method: str, path: str, content: bytes | None = None) -> bytes:
        """Past the proxy."""
        host, port = self.behind
        plain = {"Content-Type": "application/octet-stream"}
        with urlopen(Request(f"http://{host}:{port}{path}", method=method, data=content, headers=plain)) as answer:
            return bytes(answer.read())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyProxy

    def do_GET(self) -> None:
        server, length = self.server, int(self.headers.get("Content-Length") or 0)
        if self.command == "PUT" and length > 200 and server.cut_uploads > 0:
            server.cut_uploads -= 1
            self.rfile.read(length // 2)
            self._cut()
            return
        body = self.rfile.read(length)
        if server.busy > 0:
            server.busy -= 1
            self._answer(503, {"Content-Type": "application/xml"}, b"<Error><Code>SlowDown</Code></Error>")
            return
        if server.refusal:
            body = f"<Error><Code>{server.refusal}</Code><Message>No.</Message></Error>".encode()
            self._answer(400, {"Content-Type": "application/xml"}, body)
            return
        time.sleep(server.delay)
        server.log.append((self.command, self.path.split("?")[0]))
        connection = http.client.HTTPConnection(*server.behind)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        content = answer.read()
        headers = {k: v for k, v in answer.getheaders() if k.lower() not in ("transfer-encoding", "connection")}
        connection.close()
        cut = self.command == "GET" and len(content) > 200 and server.cut_downloads > 0
        server.cut_downloads -= cut
        self._answer(answer.status, headers, content, cut=cut)

    do_PUT = do_HEAD = do_POST = do_DELETE = do_GET  # noqa: N815

    def _answer(self, status: int, headers: dict[str, str], content: bytes, *, cut: bool = False) -> None:
        self.send_response_only(status)
        if self.command != "HEAD":
            headers = {k: v for k, v in headers.items() if k.lower() != "content-length"}
            headers["Content-Length"] = str(len(content))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)
        if cut:
            self._cut()

    def _cut(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serve() -> Iterator[FaultyProxy]:
    """The server with an empty bucket, behind its proxy."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    proxy = FaultyProxy(server.get_host_and_port())
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    proxy._call("PUT", f"/{BUCKET}")
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
        server.stop()
