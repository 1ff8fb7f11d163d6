// rye:signed:20261116T195035Z:8c6d22ec9a9312e9723ab34c6b55c10c19661d9ba80743b98d0b2e5d845fc861:r8d_dlVgxVyoojFfOePP-Yzh60KP74gptPJSw57dIFoFZg1cLzk2eG0uBgZww6R752mRLJgEDfhjmQOh7p--BQ==:cd7c763470a45766
// /// rye
// version = "1.0.0"
// tool_type = "library"
// executor_id = "rye/core/runtimes/node_runtime"
// category = "runtimes"
// description = "Keeps a tool on node_runtime to verified files; not to be run by itself"
// ///
//
// A file is loaded only if it is the tool itself, source of the verified anchor, or part of a
// package in a node_modules that was asked for by its name. Everything else (data, binaries, files
// without an extension) has not been verified by anyone, and node would run it all the same.
//
// This module is loaded twice: beside the tool, for require(), and by node in a thread of its own,
// for import. It needs node 20.6.

import { readFileSync, realpathSync } from "node:fs";
import Module, { isBuiltin } from "node:module";
import { dirname, extname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

// As in the verify_deps of node_runtime.
const SOURCE = new Set([".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"]);
const UNVERIFIED_FOLDERS = ["node_modules", ".git"];
const PACKAGES = `${sep}node_modules${sep}`;

// What is left of a tool without these, and says neither import nor from, imports no file.
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
    // Without a parent it is CommonJS that was imported, and how that was asked for is judged below.
    if (!isBuiltin(path)) admit(path, parent ? request : "", parent?.filename);
    return path;
  };
}

// The thread doubles the time that node takes to start, and most tools are a single file.
function mayImportFiles() {
  const text = readFileSync(tool, "utf8").replace(IMPORTS_OF_NODE, "");
  return anchor !== undefined || /\b(import|from)\b/.test(text);
}

function registerForImport() {
  if (typeof Module.register !== "function") {
    throw new Error(`node ${process.versions.node} cannot be kept to verified files; install 20.6 or newer`);
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
    `${path} is not verified and was not loaded; make it signed source in ${dirname(tool)}, ` +
      "marked as one tool by a package.json, or a package that is imported by its name",
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
