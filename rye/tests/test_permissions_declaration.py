"""The declaration: what is accepted, and what is refused before a file can be signed."""

from __future__ import annotations

from typing import Any

import pytest
from rye.items.permissions import (
    Permissions,
    joined,
    permissions_from,
    permissions_from_json,
    permissions_to_json,
)

HOST = "expected a host and a port, such as api.example.org:443, in 'permissions.net[0]'"
PATH = "expected a path that begins with {project_path}, ~ or / in"


def parsed(value: Any) -> Permissions:
    permissions, fault = permissions_from(value, "permissions")
    assert fault == ""
    return permissions


def test_everything_that_an_author_can_write() -> None:
    given = {
        "read": ["{project_path}", "~/.config/gh", "/srv/data"],
        "write": ["{project_path}/out", "tmp"],
        "net": ["api.github.com:443", "*.Example.org:443", "localhost:8080", "[::1]:80", "unix"],
        "env": ["GITHUB_TOKEN", "AWS_*"],
        "run": ["git", "g++", "system", "{project_path}/build/**", "/opt/x/bin/x"],
        "limits": {"memory": "512MiB", "cpu": 60, "processes": 64, "file_size": 1024},
    }
    permissions = parsed(given)
    assert permissions.net[1] == "*.example.org:443"
    assert permissions.hosts == permissions.net[:-1]
    assert permissions.limits == {
        "memory": 512 * 2**20,
        "cpu": 60,
        "processes": 64,
        "file_size": 1024,
    }
    assert permissions_from_json(permissions_to_json(permissions)) == permissions


def test_a_key_that_is_absent_grants_nothing() -> None:
    assert parsed({}) == Permissions()
    assert parsed({"net": False}) == Permissions()
    assert parsed({"net": True}).net == ("*",)
    assert parsed({"net": True}).hosts == ()


def test_no_permissions_are_not_the_same_as_empty_ones() -> None:
    assert permissions_from_json(permissions_to_json(None)) is None
    assert permissions_from_json(permissions_to_json(Permissions())) == Permissions()


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (
            {"reads": []},
            "expected read, write, net, env, run or limits, got 'reads' in 'permissions'",
        ),
        ({"read": "/etc"}, "expected a list of paths in 'permissions.read'"),
        ({"read": ["out"]}, f"{PATH} 'permissions.read[0]'"),
        ({"read": [7]}, f"{PATH} 'permissions.read[0]'"),
        ({"read": [""]}, f"{PATH} 'permissions.read[0]'"),
        ({"read": ["tmp"]}, f"{PATH} 'permissions.read[0]'"),
        ({"read": ["~root/x"]}, f"{PATH} 'permissions.read[0]'"),
        ({"read": ["{project_path}x"]}, f"{PATH} 'permissions.read[0]'"),
        (
            {"write": ["tmp", "{project_path}/../x"]},
            "expected a path without '..' in 'permissions.write[1]'",
        ),
        ({"read": ["/a/.."]}, "expected a path without '..' in 'permissions.read[0]'"),
        (
            {"read": ["/home/*/x"]},
            "expected a path without patterns and placeholders in 'permissions.read[0]'",
        ),
        (
            {"read": ["{project_path}/{name}"]},
            "expected a path without patterns and placeholders in 'permissions.read[0]'",
        ),
        ({"net": "yes"}, "expected true, false or a list of hosts in 'permissions.net'"),
        ({"net": ["example.org"]}, HOST),
        ({"net": ["example.org:0"]}, HOST),
        ({"net": ["example.org:65536"]}, HOST),
        ({"net": ["example.org.:443"]}, HOST),
        ({"net": ["https://example.org:443"]}, HOST),
        ({"net": ["user@example.org:443"]}, HOST),
        ({"net": ["exa mple.org:443"]}, HOST),
        ({"net": ["*.org:443"]}, HOST),
        ({"net": ["*:443"]}, HOST),
        ({"net": ["a.*.org:443"]}, HOST),
        ({"net": ["300.1.1.1:443"]}, HOST),
        ({"net": ["1.2.3:443"]}, HOST),
        ({"net": ["[::zz]:443"]}, HOST),
        ({"net": [":443"]}, HOST),
        ({"run": ["a b"]}, "expected the name of a program, or a path, in 'permissions.run[0]'"),
        ({"run": ["../x"]}, f"{PATH} 'permissions.run[0]'"),
        (
            {"run": ["{project_path}/*/x"]},
            "expected a path without patterns and placeholders in 'permissions.run[0]'",
        ),
        ({"limits": 7}, "expected a mapping in 'permissions.limits'"),
        (
            {"limits": {"disk": 1}},
            "expected memory, cpu, processes, file_size, got 'disk' in 'permissions.limits'",
        ),
        (
            {"limits": {"memory": "1 GB"}},
            "expected a size such as 512MiB in 'permissions.limits.memory'",
        ),
        (
            {"limits": {"cpu": "60s"}},
            "expected a positive whole number in 'permissions.limits.cpu'",
        ),
        ({"limits": {"cpu": True}}, "expected a positive whole number in 'permissions.limits.cpu'"),
        ({"limits": {"cpu": 0}}, "expected a positive whole number in 'permissions.limits.cpu'"),
    ],
)
def test_what_is_not_a_permission_is_refused(given: Any, fault: str) -> None:
    assert permissions_from(given, "permissions")[1] == fault


def test_permissions_of_a_runtime_are_added() -> None:
    both = joined(
        [
            Permissions(read=("/a",), net=("unix",), limits={"memory": 10, "cpu": 5}),
            Permissions(read=("/b", "/a"), write=("tmp",), limits={"memory": 20}),
        ]
    )
    assert both == Permissions(
        read=("/a", "/b"), write=("tmp",), net=("unix",), limits={"memory": 20, "cpu": 5}
    )
