"""The .env file: its grammar, ignored loader variables, and refused files."""

import logging
import os
from pathlib import Path

import pytest
from lilux.primitives.errors import ConfigurationError
from lilux.runtime.env_resolver import EnvResolver


def test_dotenv_grammar(project: Path) -> None:
    (project / ".env").write_text(
        "\ufeff# a comment\n"
        "PLAIN=value\n"
        "  INDENTED = spaced out  # remark\n"
        "SINGLE='a # b $X'\n"
        'DOUBLE="line\\nbreak \\"q\\""\n'
        "EMPTY=\n"
        "HASH=a#b\n"
        "EQUALS=a=b\n"
        "export EXPORTED=1\n"
        "\n\texport  ALSO=1\n"
        "exported=kept\n"
        "TWICE=1\nTWICE=2\n",
        encoding="utf-8",
    )
    assert EnvResolver(project, environ={}).resolve() == {
        "PLAIN": "value",
        "INDENTED": "spaced out",
        "SINGLE": "a # b $X",
        "DOUBLE": 'line\nbreak "q"',
        "EMPTY": "",
        "HASH": "a#b",
        "EQUALS": "a=b",
        "exported": "kept",
        "TWICE": "2",
    }


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "DYLD_INSERT_LIBRARIES",
        "BASH_ENV",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_CONFIG_COUNT",
        "GIT_EXTERNAL_DIFF",
        "PYTHONPATH",
        "PYTHONHOME",
        "NODE_PATH",
        "PERL5OPT",
        "RUBYLIB",
        "UV_INDEX_URL",
        "PIP_FIND_LINKS",
        "PAGER",
        "BASH_FUNC_ls",
        "HOME",
        "XDG_CONFIG_HOME",
        "SHELL",
        "OPENSSL_CONF",
        "MAKEFLAGS",
    ],
)
def test_a_dotenv_cannot_set_a_loader_variable(
    name: str, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / ".env").write_text(f"{name}=evil-payload\nKEPT=1\n")
    with caplog.at_level(logging.WARNING, logger="lilux"):
        env = EnvResolver(project, environ={name: "mine"}).resolve()
    assert env == {name: "mine", "KEPT": "1"}
    assert caplog.messages == [
        f"{project / '.env'}: {name} is ignored: it controls what processes load"
    ]


def test_a_dotenv_may_set_names_similar_to_loader_variables(project: Path) -> None:
    names = [
        "NODE_ENV",
        "ENV",
        "GIT_AUTHOR_NAME",
        "PYTHONUNBUFFERED",
        "RUBY_VERSION",
        "GITHUB_TOKEN",
        "HOME_PAGE",
        "SHELL_COLOR",
    ]
    (project / ".env").write_text("".join(f"{name}=value\n" for name in names))
    assert EnvResolver(project, environ={}).resolve() == dict.fromkeys(names, "value")


def test_rules_and_overrides_may_set_loader_variables(project: Path) -> None:
    env = EnvResolver(environ={}).resolve({"env": {"LD_PRELOAD": "a"}}, {"NODE_OPTIONS": "b"})
    assert env == {"LD_PRELOAD": "a", "NODE_OPTIONS": "b"}


def test_a_malformed_dotenv_line_is_logged_by_number_only(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / ".env").write_text(
        "A=1\n\nlonely-s3cret\nB-C=s3cret\nNUL=s3\0cret\nQ='s3cret\nZ=2\n"
    )
    with caplog.at_level(logging.WARNING, logger="lilux"):
        env = EnvResolver(project, environ={}).resolve()
    assert env == {"A": "1", "Z": "2"}
    source = project / ".env"
    assert caplog.messages == [
        f"{source}: line {n} is not KEY=value; ignored" for n in (3, 4, 5, 6)
    ]


def test_a_dotenv_that_is_too_large_is_refused(project: Path) -> None:
    path = project / ".env"
    path.write_bytes(b"A=1\n" + b"#" * (1024 * 1024))
    with pytest.raises(ConfigurationError) as caught:
        EnvResolver(project, environ={}).resolve()
    assert str(caught.value) == (
        f"{path} is larger than 1048576 bytes; keep only KEY=value lines in it"
    )


def test_a_dotenv_that_is_not_text_is_refused(project: Path) -> None:
    path = project / ".env"
    path.write_bytes(b"A=\xff\xfe\n")
    with pytest.raises(ConfigurationError) as caught:
        EnvResolver(project, environ={}).resolve()
    assert str(caught.value) == f"{path} is not UTF-8 text; fix or remove it"


def test_a_dotenv_that_cannot_be_opened_is_refused(project: Path) -> None:
    path = project / ".env"
    path.symlink_to(path)
    with pytest.raises(ConfigurationError) as caught:
        EnvResolver(project, environ={}).resolve()
    assert str(caught.value) == (
        f"{path} cannot be read: Too many levels of symbolic links; fix or remove it"
    )


def test_a_folder_or_fifo_named_dotenv_is_ignored(project: Path) -> None:
    (project / ".env").mkdir()
    assert EnvResolver(project, environ={}).resolve() == {}
    (project / ".env").rmdir()
    os.mkfifo(project / ".env")
    assert EnvResolver(project, environ={}).resolve() == {}
