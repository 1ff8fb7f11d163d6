"""What `rye run` prints about a result, and its exit code."""

from __future__ import annotations

from rye.cli.output.errors import OTHER, TIMEOUT, exit_code_of_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from rye.executor.run.result import ExecutionResult

    Rows = Iterator[tuple[str, str]]


def fields_of(result: ExecutionResult) -> dict[str, Any]:
    """Return the result for ``--json``, under its own field names."""
    return {
        "success": result.success,
        "data": result.data,
        "error": result.error,
        "duration_ms": result.duration_ms,
        "chain": list(map(dict, result.chain)),
        "metadata": dict(result.metadata),
    }


def exit_code_of(result: ExecutionResult) -> int:
    """Return 0 for success, the tool's exit code if it failed, or the code for the error."""
    if result.success:
        return 0
    error_type = result.metadata.get("error_type")
    if result.metadata.get("timed_out"):
        return TIMEOUT
    if error_type == "ToolFailed":
        code = result.metadata.get("return_code")
        return code if isinstance(code, int) and 0 < code < 256 else OTHER
    return exit_code_of_name(str(error_type))


def failure_text(result: ExecutionResult) -> str:
    """Return the error without the tool's stderr, which was already shown."""
    metadata = result.metadata
    if metadata.get("error_type") != "ToolFailed" or not result.chain:
        return result.error or "the tool failed"
    name = result.chain[0]["item_id"]
    number = metadata.get("signal")
    end = f"signal {number}" if number else f"exit code {metadata.get('return_code')}"
    hint = metadata.get("hint")
    if metadata.get("limit"):
        # Lilux says which limit was exceeded, in the last line.
        return result.error or ""
    if metadata.get("denied"):
        from rye.permissions.denials import USER_DECIDES

        if hint == USER_DECIDES:
            hint = ""  # the user is here, and reads which command to use in the note
    if not hint and not number and not metadata.get("denied"):
        from rye.cli.run.advice import advice_of

        hint = advice_of(result)
    return f"{name!r} ended with {end}" + (f"; {hint}" if hint else "")


def notes_of(result: ExecutionResult) -> Iterator[str]:
    """Yield what a user should know even if the tool succeeded."""
    metadata = result.metadata
    if denied := metadata.get("denied"):
        tool = result.chain[0]["item_id"] if result.chain else "TOOL"
        yield f"{denied}; see: rye permissions {tool}"
    if ended := metadata.get("background_ended"):
        one = ended == 1
        processes = "1 background process" if one else f"{ended} background processes"
        yield f"{processes} outlived the tool and {'was' if one else 'were'} ended"
    if result.success and isinstance(result.data, dict) and "stdout" in result.data:
        from rye.cli.run.advice import note_about_json

        if advice := note_about_json(result.data):
            yield advice
    if survivors := metadata.get("survivors"):
        listed = ", ".join(map(str, survivors))
        yield f"could not end all processes of the tool; still running: {listed}; see `ps`"
    if fault := metadata.get("lockfile_error"):
        yield f"the tool ran, but could not be pinned: {fault}"
    if note := metadata.get("closure_note"):
        yield note
    if fault := metadata.get("history_error"):
        yield f"the call could not be recorded: {fault}"


def files_of(result: ExecutionResult, project: str) -> Iterator[str]:
    """Yield where the pictures, sounds and files are that the tool returned.

    Those that it returned in base64 are saved in a new private folder for temporary files. An agent
    gets the files themselves; see :mod:`rye.mcp.media`.
    """
    blocks = result.data.get("content") if isinstance(result.data, dict) else None
    if not isinstance(blocks, list) or len(result.data) != 1:
        return
    import os.path

    folder = ""
    for number, block in enumerate(blocks, 1):
        if not isinstance(block, dict) or block.get("type") not in ("image", "audio", "file"):
            continue
        kind = block["type"]
        if isinstance(block.get("path"), str):
            yield f"{kind}: {os.path.join(project, block['path'])}"  # noqa: PTH118 - a text
        elif (data := _decoded(block.get("data"))) is not None:
            import tempfile
            from mimetypes import guess_extension

            folder = folder or tempfile.mkdtemp(prefix="rye-")
            name = f"{kind}-{number}{guess_extension(str(block.get('mimeType'))) or ''}"
            path = os.path.join(folder, name)  # noqa: PTH118 - pathlib is not loaded here
            with open(path, "wb") as file:  # noqa: PTH123 - see above
                file.write(data)
            yield f"{kind}: {path}"


def _decoded(data: object) -> bytes | None:
    if not isinstance(data, str):
        return None
    import base64

    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return None


# Dry runs


def plan_lines(plan: Mapping[str, Any], verb: str = "would run") -> Iterator[str]:
    """Yield the plan of a call: what would run, with what, and why it is trusted."""
    from rye.cli.output.printing import plain

    yield f"{verb} {plain(plan['item_id'])}:"
    for name, text in (*_target_rows(plan), *_environment_rows(plan), *_trust_rows(plan)):
        if text:
            yield f"  {name:<13}{plain(text)}"


def _target_rows(plan: Mapping[str, Any]) -> Rows:
    if "argv" in plan:
        import shlex

        yield "command", shlex.join(map(str, plan["argv"]))
        yield "directory", str(plan["cwd"]).removesuffix("/.")
        yield "stdin", f"{plan['stdin_bytes']} bytes" if plan["stdin_bytes"] else ""
    elif "request" in plan:
        yield from _request_rows(plan["request"])
    else:
        yield "primitive", plan["primitive"]
        yield "config", " ".join(plan["config_keys"])


def _request_rows(request: Mapping[str, Any]) -> Rows:
    from rye.cli.output.printing import json_text

    body = request["body"]
    yield "request", f"{request['method']} {request['url']}"
    yield "headers", " ".join(request["header_names"])
    yield "auth", request["auth"] or ""
    yield "body", body if isinstance(body, str) else "" if body is None else json_text(body)
    yield "mode", "" if request["mode"] == "sync" else request["mode"]


def _environment_rows(plan: Mapping[str, Any]) -> Rows:
    yield "timeout", "" if plan.get("timeout") is None else f"{plan['timeout']:g} s"
    yield "environment", " ".join(plan["environment"])


def _trust_rows(plan: Mapping[str, Any]) -> Rows:
    from rye.cli.output.printing import shorten_paths

    lock, count = plan["lock"], len(plan["dependencies"])
    state = "none yet" if lock["state"] == "absent" else lock["state"]
    yield "lock", f"{state}, {shorten_paths(lock['path'])}" if lock["path"] else state
    yield "dependencies", f"{count} {'file' if count == 1 else 'files'}, verified" if count else ""
    signatures = {one["item_id"]: one for one in plan["signatures"]}
    for at, element in enumerate(plan["chain"]):
        signed = signatures.get(element["item_id"])
        by = f"signed by {signed['signer']}, {signed['standing']}" if signed else "built in"
        text = f"{element['item_id']} {element['version']} ({element['space']}), {by}"
        yield "chain" if at == 0 else "", text
