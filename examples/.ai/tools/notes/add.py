# rye:signed:20261116T031444Z:61249c38ac637729856ef0d2d839a2e26b6a3169c6d4ad9ebbfe179a49d911f4:21DYCyA1J5QHByuY7KdxuJkKQUEvyPM6IoDlGpHsa6Ju7XtMC6quV9WAvjjKIGKASKitwpSTlpD6rCJwPO6tBg==:b6e3ce2753b61fa2
"""Adds a line to notes.md, so that an agent can remember something."""

from pathlib import Path

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "notes"
__tool_description__ = "Add a note to notes.md"

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

ANNOTATIONS = {"read_only": False, "destructive": False, "idempotent": False, "open_world": False}


def execute(params, project_path):
    notes = Path(project_path, "notes.md")
    line = " ".join([params["text"], *(f"#{tag}" for tag in params.get("tags", []))])
    with notes.open("a", encoding="utf-8") as file:
        file.write(f"- {line}\n")
    return {"notes": len(notes.read_text(encoding="utf-8").splitlines())}
