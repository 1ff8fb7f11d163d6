"""Run a tool and watch it, to learn which permissions it needs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from lilux.files.bounded_read import FileTooLargeError, read_bounded
from lilux.primitives.subprocess.blocking import BlockingSubprocess
from lilux.primitives.subprocess.observation import Access
from lilux.primitives.subprocess.result import SubprocessResult
from lilux.record import Record

from rye.context import Context
from rye.errors import PermissionsError
from rye.executor.run.confine import confiner_of
from rye.executor.run.prepare import CallOptions, Preparation, PreparedCall, Preparer
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye.items.permissions import Permissions, joined
from rye.permissions.base import real
from rye.permissions.chain import runtime_permissions
from rye.permissions.learn import Learned, Seen, learn, variables_read
from rye.permissions.locations import Places, is_inside
from rye.permissions.profile import home_of
from rye.spaces.ids import HTTP_CLIENT, SUBPROCESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PORTS = {"http": 80, "https": 443}
_MAX_FILES = 100
_MAX_BYTES = 1024 * 1024


class Lesson(Record, frozen=True, kw_only=True):
    """What a call showed."""

    learned: Learned
    path: str
    """The file of the tool."""
    notes: tuple[str, ...] = ()
    """Why the declaration may not be complete."""


def learn_call(
    item_id: str,
    parameters: Mapping[str, Any] | None,
    context: Context,
    on_output: Callable[[str, str], None] | None = None,
) -> Lesson:
    """Run the tool without a confinement, and return what it needs.

    The tool has the user's own rights for this call, whatever it declares. Raises the errors of a
    call, and :class:`PermissionsError` if the tool cannot be started or watched.
    """
    preparer = Preparer(context, PRIMITIVE_MAP)
    options = CallOptions(confined=False)
    try:
        call = Preparation(preparer, item_id, options).prepare(parameters)
        return _learned(call, preparer, on_output)
    finally:
        preparer.close()


def _learned(
    call: PreparedCall, preparer: Preparer, on_output: Callable[[str, str], None] | None
) -> Lesson:
    tool = call.chain[0]
    path = str(tool.path or "")
    if call.config.primitive_id == HTTP_CLIENT:
        return Lesson(learned=_of_request(call), path=path)
    if call.config.primitive_id != SUBPROCESS:
        raise PermissionsError(
            f"{tool.item_id!r} does not start a process, so it cannot be watched",
            hint="write its permissions by hand",
        )
    tmp = real(tempfile.mkdtemp(prefix="rye-learn-"))
    try:
        result = _run(call, tmp, on_output)
        accesses = _accesses(tool.item_id, result)
        seen = _seen(call, accesses, preparer, tmp)
        return Lesson(learned=learn(seen), path=path, notes=tuple(_notes(tool.item_id, result)))
    finally:
        shutil.rmtree(tmp, ignore_errors=True)


def _run(
    call: PreparedCall, tmp: str, on_output: Callable[[str, str], None] | None
) -> SubprocessResult:
    config = {
        **call.config.config,
        # What goes there can be declared as `tmp`; another folder below /tmp cannot.
        "env": {**call.config.config["env"], "TMPDIR": tmp},
        "observe": True,
    }
    with BlockingSubprocess() as client:
        return client.execute(config, call.config.params, on_output=on_output)


def _accesses(tool: str, result: SubprocessResult) -> Sequence[Access]:
    observation = result.observation
    if observation is None:
        lines = result.stderr.strip().splitlines() or [""]
        raise PermissionsError(f"{tool!r} could not be started: {lines[-1]}", hint="run it first")
    if observation.missing:
        raise PermissionsError(
            f"{tool!r} ran, but cannot be watched here: {observation.missing}",
            hint="write its permissions by hand, and see what is refused",
        )
    return observation.accesses


def _notes(tool: str, result: SubprocessResult) -> Iterator[str]:
    if not result.success:
        code = "its timeout" if result.timed_out else f"exit code {result.return_code}"
        yield f"{tool!r} ended with {code}: what it does after a success was not seen"
    observation = result.observation
    if observation is not None and observation.omitted:
        yield f"the list is full: {observation.omitted} more attempts are not in it"
    if observation is not None and observation.unreadable:
        yield f"{observation.unreadable} attempts of other users' processes could not be read"


def _seen(call: PreparedCall, accesses: Sequence[Access], preparer: Preparer, tmp: str) -> Seen:
    context = preparer.context
    bases = runtime_permissions(call.chain)

    def confiner(permissions: Permissions) -> Any:
        return confiner_of(
            joined([permissions, *bases]),
            call.chain,
            call.anchor,
            call.environment,
            call.config,
            context=context,
            own=call.placement.folders,
        )

    keeps = confiner(Permissions()).profile.keeps
    environ = {**context.environ, **dict.fromkeys(preparer.environments.unasked(call.chain), "")}
    sockets = {one.target for one in accesses if one.what == "unix" and one.exists}
    variables = variables_read(
        _own_texts(call, accesses),
        [name for name in environ if not keeps(name)],
        {name: real(value) for name, value in environ.items() if value and real(value) in sockets},
    )
    return Seen(
        accesses=accesses,
        confinement_of=lambda permissions: confiner(permissions).confinement(require=()),
        places=Places(project=str(context.project_path), home=real(home_of(context.environ))),
        tmp=tmp,
        path=call.config.config["env"].get("PATH", ""),
        variables=variables,
    )


def _own_texts(call: PreparedCall, accesses: Sequence[Access]) -> Iterator[tuple[str, str]]:
    """The text of the tool, and of the files beside it that it has read."""
    own = call.chain[0].path
    if own is None:
        return
    folder = real(str(own.parent))
    read = [one.target for one in accesses if one.what == "read" and is_inside(one.target, folder)]
    for path in dict.fromkeys([real(str(own)), *read[:_MAX_FILES]]):
        try:
            text = read_bounded(path, _MAX_BYTES).decode("utf-8", "replace")
        except (OSError, FileTooLargeError):
            continue
        yield os.path.basename(path), text  # noqa: PTH119 - a text


def _of_request(call: PreparedCall) -> Learned:
    """What a request needs is its host, which is known without sending it."""
    url = urlsplit(str(call.config.config.get("url", "")))
    port = url.port or _PORTS.get(url.scheme, 443)
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    entry = f"{host}:{port}"
    return Learned(
        permissions=Permissions(net=(entry,)),
        reasons={("net", entry): "the URL of the tool; nothing was sent"},
        left_out=(),
    )
