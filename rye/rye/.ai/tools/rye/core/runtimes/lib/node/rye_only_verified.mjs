// rye:signed:20261118T125305Z:30ed0f8adc41427b157e52a355b93e571f6be65b79d2b4a369ceb1ac0a1d02d6:7HX4-pu9FCT4c8vqinVGvlJRlYwWPp2riqXniZj2QYt5pu0mX55DGbSihgesWsyMFvQVfYsKhO0FUjSoZjqzBQ==:0cdadc7a57fefd2c
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
// The tool and its anchor are in a private copy. A package is found from the author's folder, where
// its node_modules folder is; everything else is found in the copy.
//
// This module is loaded twice: in the tool's thread for require(), and by node in the thread of the
// module hooks for import. It needs node 20.6.

import { existsSync, readFileSync, realpathSync } from "node:fs";
import Module, { createRequire, isBuiltin } from "node:module";
import { dirname, extname, join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

// The same as in verify_deps of node_runtime.
const SOURCE = new Set([".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"]);
const UNVERIFIED_FOLDERS = ["node_modules", ".git"];
const PACKAGES = `${sep}node_modules${sep}`;

// A tool that contains neither "import" nor "from" apart from these imports no file.
const IMPORTS_OF_NODE = /^import\s[^;"'()]*\sfrom\s*["']node:[\w/]+["'];?$/gm;

let tool;
let anchor;
let copy;
let source;

export function initialize(places) {
  ({ tool, anchor, copy, source } = places);
}

// `author` is the path of the author's file.
export function loadOnlyVerified(toolPath, anchorPath, author) {
  const real = realpathSync(toolPath);
  const folder = anchorPath ? realpathSync(anchorPath) : dirname(real);
  const inside = relative(folder, real);
  initialize({
    tool: real,
    anchor: anchorPath ? folder : undefined,
    copy: folder,
    source: author.slice(0, author.length - inside.length - 1),
  });
  if (mayImportFiles()) registerForImport();
  const resolveFilename = Module._resolveFilename;
  Module._resolveFilename = function (request, parent, ...rest) {
    const from = parent?.filename;
    let path;
    if (from === undefined || isBuiltin(request) || !isCopy(from)) {
      path = resolveFilename.call(this, request, parent, ...rest);
    } else if (isByName(request)) {
      path = copyOf(createRequire(original(from)).resolve(request));
    } else {
      try {
        path = resolveFilename.call(this, request, parent, ...rest);
      } catch (error) {
        throw unverified(() => createRequire(original(from)).resolve(request)) ?? error;
      }
    }
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
  Module.register(import.meta.url, { data: { tool, anchor, copy, source } });
}

export async function resolve(specifier, context, next) {
  const parent = context.parentURL?.startsWith("file:") ? fileURLToPath(context.parentURL) : undefined;
  if (parent === undefined || !isCopy(parent)) return admitted(await next(specifier, context), specifier, parent);
  const elsewhere = { ...context, parentURL: pathToFileURL(original(parent)).href };
  if (isByName(specifier)) {
    const found = await next(specifier, elsewhere);
    if (found.url.startsWith("file:")) found.url = pathToFileURL(copyOf(fileURLToPath(found.url))).href;
    return admitted(found, specifier, parent);
  }
  let found;
  try {
    found = await next(specifier, context);
  } catch (error) {
    found = await next(specifier, elsewhere).catch(() => undefined);
    if (found === undefined) throw error;
  }
  return admitted(found, specifier, parent);
}

function admitted(found, specifier, parent) {
  if (found.url.startsWith("file:")) admit(fileURLToPath(found.url), specifier, parent);
  return found;
}

function isCopy(path) {
  return path.startsWith(copy + sep);
}

// The author's file that a path in the copy stands for.
function original(path) {
  return isCopy(path) ? source + path.slice(copy.length) : path;
}

// The copy of an author's file, if there is one: a package may import itself by its name.
function copyOf(path) {
  const place = path.startsWith(source + sep) ? copy + path.slice(source.length) : path;
  return existsSync(place) ? place : path;
}

// A file that exists only beside the original is not verified; otherwise it does not exist.
function unverified(find) {
  try {
    admit(find(), "", undefined);
  } catch (error) {
    return error.code === undefined ? error : undefined;
  }
}

function admit(path, specifier, parent) {
  const real = realpathSync(path);
  if (real === tool || isVerified(real) || isOfPackage(real, specifier, parent)) return;
  throw new Error(
    `${original(path)} is not verified and was not loaded; sign it as source in ${dirname(original(tool))} and ` +
      "add a package.json there, or install it as a package and import it by name",
  );
}

function isVerified(real) {
  if (anchor === undefined || !SOURCE.has(extname(real))) return false;
  const parts = relative(anchor, real).split(sep);
  return real.startsWith(join(anchor, sep)) && !UNVERIFIED_FOLDERS.some((name) => parts.includes(name));
}

// "#name" is found in the package.json of the tool, which is in the copy.
function isByName(specifier) {
  return !/^(\.{0,2}\/|\.{1,2}$|[a-z]+:|#)/i.test(specifier);
}

function isOfPackage(real, specifier, parent) {
  return real.includes(PACKAGES) && (isByName(specifier) || Boolean(parent?.includes(PACKAGES)));
}
