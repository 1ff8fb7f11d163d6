"""HttpClientPrimitive against a bare httpx2 client: one GET of a small JSON body on loopback.

Both use the pool settings of the specification and alternate requests to the same server in another
process. Prints the medians and their ratio; exits with 1 if the ratio is above the limit.

Usage: python bench/http_get.py [rounds]
"""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
from lilux.primitives.http_client import HttpClientPrimitive

LIMIT = 1.15
WARM_UP = 50
TESTING = Path(__file__).resolve().parent.parent / "testing"
SERVER = """
import sys
sys.path.insert(0, sys.argv[1])
from loopback_http import LoopbackServer, respond
with LoopbackServer() as server:
    print(server.on("/item", respond(json={"id": 7, "name": "seven"})), flush=True)
    sys.stdin.read()
"""


async def timed(call: Callable[[], Awaitable[object]]) -> float:
    """Return the duration of one call in milliseconds."""
    started = time.perf_counter()
    await call()
    return (time.perf_counter() - started) * 1000


async def compare(url: str, rounds: int) -> float:
    """Alternate the two, print both medians, and return their ratio."""
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

        for _ in range(WARM_UP):
            await with_bare()
            await with_primitive()
        bare_ms: list[float] = []
        primitive_ms: list[float] = []
        for _ in range(rounds):
            bare_ms.append(await timed(with_bare))
            primitive_ms.append(await timed(with_primitive))
    peer, ours = statistics.median(bare_ms), statistics.median(primitive_ms)
    print(f"httpx2 alone          p50 {peer:.3f} ms")
    print(f"HttpClientPrimitive   p50 {ours:.3f} ms")
    return ours / peer


def main() -> int:
    """Run the comparison. Returns 1 if the limit was exceeded."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(TESTING)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        ratio = asyncio.run(compare(server.stdout.readline().strip(), rounds))
        server.stdin.close()
    print(f"ratio {ratio:.3f} over {rounds} alternating calls (limit {LIMIT})")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
