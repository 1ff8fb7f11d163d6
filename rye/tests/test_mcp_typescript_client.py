"""The official TypeScript client with ``rye mcp``."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from mcp_session import command, environment
from node_packages import install
from rye.mcp.budget import DEFAULT_BUDGET
from rye_project import Project

SDK = "@modelcontextprotocol/sdk@1"
SECONDS = 600
GIGABYTE = 1_000_000_000

CLIENT = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const results = [];
for (const item_id of ["large", "small"]) {
  const call = { name: "execute", arguments: { item_id, timeout: 500 } };
  results.push(await client.callTool(call, undefined, { timeout: 500_000 }));
}
console.log(JSON.stringify(results));
await client.close();
"""


@pytest.mark.torture  # it installs the client, and a gigabyte takes a while
def test_the_client_survives_a_tool_that_prints_a_gigabyte(tmp_path: Path) -> None:
    project = Project(tmp_path)
    script = f"yes 'a line of the output' | head -c {GIGABYTE}; printf '\\nthe end'"
    project.command("large", "/bin/sh", "-c", script)
    project.command("small", "/bin/echo", "still here")
    folder = tmp_path / "client"
    node = install(folder, SDK)
    (folder / "client.mjs").write_text(CLIENT)
    done = subprocess.run(
        [node, str(folder / "client.mjs"), *command(project)],
        env=environment(project),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    large, small = json.loads(done.stdout)
    text = large["content"][0]["text"]
    assert not large.get("isError"), text
    dropped = re.search(r"; ([\d,]+) bytes in the middle were dropped while", text.splitlines()[0])
    assert dropped, text[:300]
    # All of it was printed, and 10 MiB are kept.
    kept = GIGABYTE + len("\nthe end") - int(dropped[1].replace(",", ""))
    assert kept == 10 * 1024 * 1024
    assert text.endswith("\nthe end")
    assert len(text) <= DEFAULT_BUDGET
    assert len(done.stdout) < 2 * DEFAULT_BUDGET
    assert small["content"][0]["text"] == "still here\n"
