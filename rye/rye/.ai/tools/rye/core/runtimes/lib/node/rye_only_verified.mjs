// /// rye
// version = "1.0.0"
// tool_type = "library"
// executor_id = "rye/core/runtimes/node_runtime"
// category = "runtimes"
// description = "Restricts a tool on node_runtime to verified files; not a tool itself"
// ///
//
// A file is loaded only if it is the tool itself, a source file of the verified anchor, or part of a
// package in a node_modules folder that was imported by name. Other files (data, binaries, files
// without an extension) are not verified, and node would run them.
//
// This module is loaded twice: in the tool's thread for require(), and by node in the thread of the
// module hooks for import. It needs node 20.6.

import { readFileSync, realpathSync } from "node:fs";
import Module, { isBuiltin } from "node:module";
import { dirname, extname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

// The same as in verify_deps of node_runtime.
const SOURCE = new Set([".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"]);
const UNVERIFIED_FOLDERS = ["node_modules", ".git"];
const PACKAGES = `${sep}node_modules${sep}`;

// A tool that contains neither "import" nor "from" apart from these imports no file.
const IMPORTS_OF_NODE = /^import\s[^;"'()]*\sfrom\s*["']node:[\w/]+["'];?$/gm;

let tool;
let anchor;

export function initialize(places) {
  tool = places.tool;
  anchor = places.anchor;
}

export function loadOnlyVerified(toolPath, anchorPath) {
  initialize({
    tool: realpathSync(toolPath),
    anchor: anchorPath ? realpathSync(anchorPath) : undefined,
  });
  if (mayImportFiles()) registerForImport();
  const resolveFilename = Module._resolveFilename;
  Module._resolveFilename = function (request, parent, ...rest) {
    const path = resolveFilename.call(this, request, parent, ...rest);
    // Without a parent, CommonJS was loaded by import; resolve() below checks the specifier.
    if (!isBuiltin(path)) admit(path, parent ? request : "", parent?.filename);
    return path;
  };
}

// The thread of the hooks doubles the start-up time of node, and most tools are a single file.
function mayImportFiles() {
  const text = readFileSync(tool, "utf8").replace(IMPORTS_OF_NODE, "");
  return anchor !== undefined || /\b(import|from)\b/.test(text);
}

function registerForImport() {
  if (typeof Module.register !== "function") {
    throw new Error(`node ${process.versions.node} cannot restrict a tool to verified files; install 20.6 or newer`);
  }
  Module.register(import.meta.url, { data: { tool, anchor } });
}

export async function resolve(specifier, context, next) {
  const found = await next(specifier, context);
  if (found.url.startsWith("file:")) {
    const parent = context.parentURL?.startsWith("file:") ? fileURLToPath(context.parentURL) : undefined;
    admit(fileURLToPath(found.url), specifier, parent);
  }
  return found;
}

function admit(path, specifier, parent) {
  const real = realpathSync(path);
  if (real === tool || isVerified(real) || isOfPackage(real, specifier, parent)) return;
  throw new Error(
    `${path} is not verified and was not loaded; sign it as source in ${dirname(tool)} and ` +
      "add a package.json there, or install it as a package and import it by name",
  );
}

function isVerified(real) {
  if (anchor === undefined || !SOURCE.has(extname(real))) return false;
  const parts = relative(anchor, real).split(sep);
  return real.startsWith(join(anchor, sep)) && !UNVERIFIED_FOLDERS.some((name) => parts.includes(name));
}

function isOfPackage(real, specifier, parent) {
  const byName = !/^(\.{0,2}\/|\.{1,2}$|[a-z]+:)/i.test(specifier);
  return real.includes(PACKAGES) && (byName || Boolean(parent?.includes(PACKAGES)));
}
