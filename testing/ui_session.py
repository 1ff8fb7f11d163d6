"""The page ``rye ui`` as a child process, and raw requests to it.

::

    with served_page(project, "--run") as page:
        visitor = page.enter()
        assert "Tools" in visitor.get("/").text
"""

from __future__ import annotations

import http.client
import re
import select
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from processes import wait_until
from rye_command import COMMAND, environment
from rye_project import Project

SECONDS = 30


class Answer(NamedTuple):
    """A response, read to its end."""

    status: int
    headers: Mapping[str, str]
    text: str


class Served:
    """A running page."""

    def __init__(self, process: subprocess.Popen[str], link: str) -> None:
        self.process = process
        self.link = link
        parts = urlsplit(link)
        assert parts.hostname is not None
        assert parts.port is not None
        self.host = parts.netloc
        self.port = parts.port
        self.enter_path = f"{parts.path}?{parts.query}"

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str | None] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """Send exactly these headers, and ``Host`` unless it is among them; ``None`` removes it."""
        sent: dict[str, str | None] = {"Host": self.host, **(headers or {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            if body:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            response = connection.getresponse()
            text = response.read().decode("utf-8")
            return Answer(response.status, dict(response.getheaders()), text)
        finally:
            connection.close()

    def enter(self) -> Visitor:
        """Use the link, as a browser does."""
        answer = self.ask(self.enter_path)
        assert answer.status == 200, answer.text
        return Visitor(self, answer.headers["set-cookie"].partition(";")[0])


class Visitor:
    """A browser that has used the link."""

    def __init__(self, page: Served, cookie: str) -> None:
        self.page = page
        self.cookie = cookie

    def get(self, path: str, **headers: str) -> Answer:
        """Load a page."""
        return self.page.ask(path, headers={"Cookie": self.cookie, **headers})

    def form_token(self, path: str = "/") -> str:
        """The token in the forms of a page."""
        found = re.search(r'name="csrf" value="([0-9a-f]{64})"', self.get(path).text)
        assert found is not None, f"{path} has no form"
        return found[1]

    def post(self, path: str, fields: Mapping[str, str], **headers: str | None) -> Answer:
        """Send a form as a browser does; the token is among the fields if it is wanted."""
        sent: dict[str, str | None] = {
            "Cookie": self.cookie,
            "Origin": f"http://{self.page.host}",
            "Sec-Fetch-Site": "same-origin",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        return self.page.ask(
            path,
            method="POST",
            headers={**sent, **headers},
            body=urlencode(fields).encode() or b"&",
        )


@contextmanager
def served_page(
    project: Project, *options: str, env: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """Serve the page of a project until the end of the block; nothing may be on stderr."""
    with started(project.path, project.user, *options, env=env) as page:
        yield page


@contextmanager
def started(
    cwd: Path, user: Path, *options: str, env: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """Serve the page in a directory."""
    process = subprocess.Popen(
        [*COMMAND, "ui", "--no-open", *options],
        cwd=cwd,
        env=environment(user, env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], SECONDS)
        line = process.stdout.readline() if ready else ""
        found = re.search(r"rye: open (http://\S+)", line)
        assert found is not None, f"no link: {line!r}"
        yield Served(process, found[1])
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: process.poll() is not None, "rye ui has ended")
        assert process.stderr is not None
        assert process.stderr.read() == ""
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
