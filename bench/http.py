"""HttpClientPrimitive against a bare httpx2 client: one GET of a small JSON body on loopback.

Both use the pool settings of the specification and alternate requests to the same server in another
process.
"""

import asyncio
import subprocess
import sys
from pathlib import Path

import httpx2
from lilux.primitives.http_client import HttpClientPrimitive

from bench.table import Report, Row, alternating_async

LIMIT = 1.15
ROUNDS = 1000
TESTING = Path(__file__).resolve().parent.parent / "testing"
SERVER = """
import sys
sys.path.insert(0, sys.argv[1])
from loopback_http import LoopbackServer, respond
with LoopbackServer() as server:
    print(server.on("/item", respond(json={"id": 7, "name": "seven"})), flush=True)
    sys.stdin.read()
"""


async def compare(url: str) -> Row:
    limits = httpx2.Limits(max_keepalive_connections=10, max_connections=20)
    async with (
        httpx2.AsyncClient(limits=limits, timeout=httpx2.Timeout(30.0)) as bare,
        HttpClientPrimitive() as primitive,
    ):

        async def with_bare() -> None:
            response = await bare.get(url)
            assert response.json()["id"] == 7

        async def with_primitive() -> None:
            result = await primitive.execute({"url": url}, {})
            assert result.body["id"] == 7

        peer, ours = await alternating_async(ROUNDS, with_bare, with_primitive)
    detail = f"{ours:.0f} / {peer:.0f} µs"
    return Row("one GET ÷ httpx2 alone", ours / peer, LIMIT, detail=detail)


def measure() -> Report:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(TESTING)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        row = asyncio.run(compare(server.stdout.readline().strip()))
        server.stdin.close()
    return Report([row])
