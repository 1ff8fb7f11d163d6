// rye:signed:20261118T112357Z:5d425fbb6b90722e83d7e8e5bd92a40c4b5566d47343ca3f2b61c5353cf459a0:bTfiqmUBvi0FPyeaaZ2UxToszZOhIb4-HC-eb0cC3uVM1flY5Yj7e1LkqyiVeC5QSE-oBHYg1WAP3phY1zIFAA==:f3b8c4ccdd3d0f3f
// /// rye
// version = "1.0.0"
// tool_type = "javascript"
// executor_id = "rye/core/runtimes/node_runtime"
// category = "notes"
// description = "Count the tags of all notes"
//
// [permissions]
// read = ["{project_path}/notes"]
//
// [annotations]
// read_only = true
// open_world = false
// ///

import { readFile } from "node:fs/promises";
import { join } from "node:path";

export async function execute(params, projectPath) {
  const notes = await readFile(join(projectPath, "notes", "notes.md"), "utf8");
  const counts = {};
  for (const [, tag] of notes.matchAll(/#([a-z]+)/g)) {
    counts[tag] = (counts[tag] ?? 0) + 1;
  }
  return counts;
}
