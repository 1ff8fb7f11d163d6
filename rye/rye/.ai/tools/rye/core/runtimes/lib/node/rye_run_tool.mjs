// rye:signed:20261116T040140Z:5e5c527c66368400baf3b2e7964236e940d230aa2bf8bdd38b49c772a0aa40c5:45-fs7i3dtphpCUiloHZRIr0pEfE9tSne-72FzGzQms3aKBco6OkCUIqRA3wR3mg6qKMl2te7re4FsmeytltCw==:7390e0fbbc04fd3d
// /// rye
// version = "1.0.0"
// tool_type = "library"
// executor_id = "rye/core/runtimes/node_runtime"
// category = "runtimes"
// description = "Calls a JavaScript or TypeScript tool for node_runtime; not to be run by itself"
// ///
//
// Usage: node rye_run_tool.mjs TOOL_PATH PROJECT_PATH [ANCHOR_PATH] < params.json
//
// Calls the exported main(params), else execute(params, projectPath), else the default function.
// What it returns (or resolves to) is printed as JSON, undefined prints nothing; what it logs goes
// to stderr. A thrown error is printed with its stack and makes the exit code 1. Nothing is loaded
// but what rye_only_verified.mjs admits.

import { readFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import { loadOnlyVerified } from "./rye_only_verified.mjs";

class ToolError extends Error {}

const TYPESCRIPT = new Set([".ts", ".mts", ".cts"]);

async function run(toolPath, projectPath, anchorPath) {
  const params = readParameters();
  const writeToStderr = process.stderr.write.bind(process.stderr);
  process.stdout.write = writeToStderr;
  process.argv = [process.argv[0], toolPath];
  const tool = await load(toolPath, anchorPath);
  const result = await call(tool, toolPath, params, projectPath);
  if (result !== undefined) writeAll(toJson(result, toolPath) + "\n");
}

function readParameters() {
  let params;
  try {
    params = JSON.parse(readFileSync(0, "utf8") || "{}");
  } catch (error) {
    throw new ToolError(`the parameters on stdin are not JSON (${error.message}); send one JSON object`);
  }
  if (params === null || typeof params !== "object" || Array.isArray(params)) {
    throw new ToolError("the parameters on stdin are no JSON object; send one JSON object");
  }
  return params;
}

async function load(toolPath, anchorPath) {
  const url = pathToFileURL(toolPath).href;
  if (TYPESCRIPT.has(extname(toolPath)) && !process.features.typescript) {
    await registerTsx(toolPath);
  }
  // Last of all, for what is registered last has the last word.
  loadOnlyVerified(toolPath, anchorPath);
  return import(url);
}

async function registerTsx(toolPath) {
  let entry;
  try {
    // Looked for from the tool upwards: a tool of the user does not run what a checkout brings.
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
  // The exports of CommonJS arrive under "default", and only some of them by name.
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
      `${toolPath} returned something that JSON cannot express (${error.message.split("\n")[0]}); ` +
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

function writeAll(text) {
  const bytes = Buffer.from(text);
  let sent = 0;
  while (sent < bytes.length) {
    try {
      sent += writeSync(1, bytes, sent);
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

const [toolPath, projectPath, anchorPath] = process.argv.slice(2);
try {
  await run(toolPath, projectPath, anchorPath);
} catch (error) {
  fail(error);
}
