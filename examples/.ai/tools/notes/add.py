# rye:signed:20261118T112357Z:8b431cf6f223aa60c585d5434b2e0d40ce1065844a56054db4c62e8b9fbf8914:nzpMyJEegUHrV2qqaf6OqFZBxuEzbPq_LZfkbrw5UiZ5UCGm2gHEf-egqcNqnQ4veqMIbbBIsa2h9duQomvSBQ==:f3b8c4ccdd3d0f3f
"""Adds a line to notes/notes.md, so that an agent can remember something."""

from pathlib import Path

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "notes"
__tool_description__ = "Add a note to notes/notes.md"

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 1, "description": "The note, one line"},
        "tags": {
            "type": "array",
            "items": {"type": "string", "pattern": "^[a-z]+$"},
            "description": "Words to find it by",
        },
    },
    "required": ["text"],
    "additionalProperties": False,
}

PERMISSIONS = {"write": ["{project_path}/notes"]}

ANNOTATIONS = {"read_only": False, "destructive": False, "idempotent": False, "open_world": False}


def execute(params, project_path):
    notes = Path(project_path, "notes", "notes.md")
    line = " ".join([params["text"], *(f"#{tag}" for tag in params.get("tags", []))])
    with notes.open("a", encoding="utf-8") as file:
        file.write(f"- {line}\n")
    return {"notes": len(notes.read_text(encoding="utf-8").splitlines())}
