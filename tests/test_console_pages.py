"""Console pages are run, and output that differs from the page is reported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from console_pages import Command, File, fresh_environment, matches, play, steps

PAGE = """\
Run:

```console
$ echo one
one
$ cat <<'END'
> two
> END
two
```

`notes/a.txt`:

```text
three
```

```console
$ cd notes && cat a.txt
three
$ pwd; export WORD=four; false
…/notes
$ echo $? $WORD
1 four
```
"""


def test_a_page_is_split_into_steps_in_order() -> None:
    assert [type(step) for step in steps(PAGE)] == [
        Command,
        Command,
        File,
        Command,
        Command,
        Command,
    ]
    assert next(iter(steps(PAGE))) == Command("echo one\n", "one\n", 4)


def test_a_correct_page_is_run_to_its_end(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert play(page, tmp_path, fresh_environment(tmp_path, Path(sys.executable).parent)) == 5


def test_wrong_output_is_reported_with_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("$ echo one\none", "$ echo one\n1"))
    with pytest.raises(
        AssertionError, match=r"page.md:4: echo one\nprints .*\none\nbut the page shows"
    ):
        play(page, tmp_path, fresh_environment(tmp_path, Path(sys.executable).parent))


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a…c\n", "abbc\n", True),
        ("a…c\n", "ab\nbc\n", False),
        ("a\n…\nz\n", "a\nb\nc\nz\n", True),
        ("a\n…\nz\n", "a\nz\n", True),
        ("a\n", "a\nb\n", False),
        ("", "a\n", False),
        ("a\n", "a", True),
        ("a…\nb\n", "b\nax\n", True),
        ("a…\nb\n", "b\nb\n", False),
        ("a\nb\n", "b\na\nc\n", False),
    ],
)
def test_ellipses_match_any_text(shown: str, printed: str, same: bool) -> None:
    assert matches(shown, printed) is same
