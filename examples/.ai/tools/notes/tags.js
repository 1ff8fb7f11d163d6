// rye:signed:20261116T031444Z:86e7b05e454dc64745b4a1afa7f277d6bfa50cb56fe5aca00ad5c045f659da82:JDzddIBJ6kEdhZL6PugGfBwM6IAn-Gyb3pyGFYoiio7Oh6nukaQP2XfhIIkbOSezqOxNLET7oiJhR6sc0-tqCQ==:b6e3ce2753b61fa2
// /// rye
// version = "1.0.0"
// tool_type = "javascript"
// executor_id = "rye/core/runtimes/node_runtime"
// category = "notes"
// description = "Count the tags of all notes"
//
// [annotations]
// read_only = true
// open_world = false
// ///

import { readFile } from "node:fs/promises";
import { join } from "node:path";

export async function execute(params, projectPath) {
  const notes = await readFile(join(projectPath, "notes.md"), "utf8");
  const counts = {};
  for (const [, tag] of notes.matchAll(/#([a-z]+)/g)) {
    counts[tag] = (counts[tag] ?? 0) + 1;
  }
  return counts;
}
