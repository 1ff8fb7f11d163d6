// rye:signed:20261118T125305Z:d53848912af29431328b5f0f897c43bcbd56ce51eea271b5308dbbcd8162591e:cthDbJb0C0PDVWX4eWz4hFPDfmlzossfwr0X44IbVSrYtLRWiLCvt3nGnnq_puzGyNOqB5gOcmgiWrPX3QPiCw==:0cdadc7a57fefd2c
// /// rye
// version = "1.0.0"
// tool_type = "library"
// executor_id = "rye/core/runtimes/node_runtime"
// category = "runtimes"
// description = "Runs a JavaScript or TypeScript tool for node_runtime; not a tool itself"
// ///
//
// Usage: node rye_run_tool.mjs TOOL_PATH PROJECT_PATH ANCHOR_PATH SOURCE_DIR < params.json
//
// TOOL_PATH and ANCHOR_PATH are in a private copy of what was verified; an empty anchor means none.
// The author's file is in SOURCE_DIR: packages are found from there, and messages name it.
//
// Calls the exported main(params), else execute(params, projectPath), else the default function.
// The value that it returns (or resolves to) is printed as JSON; undefined prints nothing. Console
// output goes to stderr. A thrown error is printed with its stack, and the exit code is 1.
//
// A file that exports nothing is a script: it runs with the parameters on stdin, and its stdout is
// the result.
//
// Only files that rye_only_verified.mjs admits are loaded.

import { readFileSync, readSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { loadOnlyVerified } from "./rye_only_verified.mjs";

class ToolError extends Error {}

const STDOUT = 1;
const STDERR = 2;
const TYPESCRIPT = new Set([".ts", ".mts", ".cts"]);

async function run(toolPath, projectPath, anchorPath, sourceDir) {
  const shown = join(sourceDir, basename(toolPath));
  process.argv = [process.argv[0], toolPath];
  // Without these words the file exports nothing, so that its output need not be held back.
  const mayExport = /\bexports?\b/.test(readFileSync(toolPath, "utf8"));
  const output = mayExport ? holdOutput() : undefined;
  // What follows the parameters is for the tool, which may read it while it loads.
  const early = mayExport && process.env.RYE_STDIN !== undefined ? readParameters() : undefined;
  let tool;
  try {
    tool = await load(toolPath, anchorPath, shown);
  } catch (error) {
    output?.release(STDERR);
    throw error;
  }
  if (exportsNothing(tool)) {
    output?.release(STDOUT);
    return;
  }
  output?.release(STDERR);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  const result = await call(tool, shown, early ?? readParameters(), projectPath);
  if (result !== undefined) writeAll(STDOUT, Buffer.from(toJson(result, shown) + "\n"));
}

// Whether a file is a script is certain only after it has loaded: until then, keep what it prints.
function holdOutput() {
  const chunks = [];
  const write = process.stdout.write;
  process.stdout.write = (chunk, encoding, done) => {
    const callback = typeof encoding === "function" ? encoding : done;
    chunks.push(Buffer.from(chunk, typeof encoding === "string" ? encoding : undefined));
    if (callback) process.nextTick(callback);
    return true;
  };
  let held = true;
  const release = (fd) => {
    if (!held) return;
    held = false;
    process.stdout.write = write;
    writeAll(fd, Buffer.concat(chunks));
  };
  // Only a script exits while it loads.
  process.on("exit", () => release(STDOUT));
  return { release };
}

function exportsNothing(tool) {
  // The exports of CommonJS are under "default", and in newer versions of node also under
  // "module.exports"; if nothing is exported, they are an empty object.
  const names = Object.keys(tool).filter((name) => name !== "default" && name !== "module.exports");
  if (names.length > 0) return false;
  const fallback = tool.default;
  if (fallback === undefined) return true;
  return fallback !== null && typeof fallback === "object" && Object.keys(fallback).length === 0;
}

function readParameters() {
  let params;
  try {
    params = JSON.parse(readStdin() || "{}");
  } catch (error) {
    throw new ToolError(`the parameters on stdin are not JSON (${error.message}); send one JSON object`);
  }
  if (params === null || typeof params !== "object" || Array.isArray(params)) {
    throw new ToolError("the parameters on stdin are not a JSON object; send one JSON object");
  }
  return params;
}

function readStdin() {
  const size = process.env.RYE_STDIN;
  if (size === undefined) return readFileSync(0, "utf8");
  delete process.env.RYE_STDIN;
  const bytes = Buffer.alloc(Number(size));
  let read = 0;
  while (read < bytes.length) {
    const part = readSync(0, bytes, read, bytes.length - read, null);
    if (part === 0) break;
    read += part;
  }
  return bytes.toString("utf8", 0, read);
}

async function load(toolPath, anchorPath, shown) {
  const url = pathToFileURL(toolPath).href;
  if (TYPESCRIPT.has(extname(toolPath)) && !process.features.typescript) {
    await registerTsx(shown);
  }
  // After tsx, since the hook that is registered last decides.
  loadOnlyVerified(toolPath, anchorPath, shown);
  return import(url);
}

async function registerTsx(toolPath) {
  let entry;
  try {
    // Searched from the tool upwards, so that a user's tool does not run code of a checkout.
    entry = createRequire(toolPath).resolve("tsx/esm/api");
  } catch {
    throw new ToolError(
      `${toolPath} is TypeScript, which node ${process.versions.node} does not run; ` +
        "install node 22.18 or newer, or run: npm install --save-dev tsx",
    );
  }
  const { register } = await import(pathToFileURL(entry).href);
  register();
}

async function call(tool, toolPath, params, projectPath) {
  // The exports of CommonJS are under "default", and only some of them also have their own name.
  const fallback = tool.default;
  const named = (name) => tool[name] ?? (fallback == null ? undefined : fallback[name]);
  if (typeof named("main") === "function") return named("main")(params);
  if (typeof named("execute") === "function") return named("execute")(params, projectPath);
  if (typeof fallback === "function") return fallback(params);
  if (typeof fallback?.default === "function") return fallback.default(params);
  throw new ToolError(
    `${toolPath} exports neither main(params) nor execute(params, projectPath) nor a default function; ` +
      "export one of them",
  );
}

function toJson(result, toolPath) {
  let text;
  try {
    text = JSON.stringify(result);
  } catch (error) {
    throw new ToolError(
      `${toolPath} returned a value that JSON cannot express (${error.message.split("\n")[0]}); ` +
        "return objects, arrays, strings, numbers, booleans and null",
    );
  }
  if (text === undefined) {
    throw new ToolError(
      `${toolPath} returned a ${typeof result}, which JSON cannot express; ` +
        "return objects, arrays, strings, numbers, booleans and null",
    );
  }
  return text;
}

function writeAll(fd, bytes) {
  let sent = 0;
  while (sent < bytes.length) {
    try {
      sent += writeSync(fd, bytes, sent);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

function fail(error) {
  const text = error instanceof ToolError ? error.message : (error?.stack ?? String(error));
  process.exitCode = 1;
  process.stderr.write(text + "\n");
}

const [toolPath, projectPath, anchorPath, sourceDir] = process.argv.slice(2);
try {
  await run(toolPath, projectPath, anchorPath, sourceDir);
} catch (error) {
  fail(error);
}
