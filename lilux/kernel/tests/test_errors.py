"""Errors: reason and hint are fields, so that no caller has to parse the text."""

import pickle

from lilux.primitives.errors import ConfigurationError, LiluxError


def test_the_text_is_the_reason_and_the_hint() -> None:
    error = ConfigurationError("the folder is missing", hint="create it")
    assert str(error) == "the folder is missing; create it"
    assert (error.reason, error.hint) == ("the folder is missing", "create it")


def test_the_hint_is_optional() -> None:
    error = LiluxError("the folder is missing")
    assert (str(error), error.reason, error.hint) == (
        "the folder is missing",
        "the folder is missing",
        "",
    )


def test_an_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(ConfigurationError("missing", hint="create it")))  # noqa: S301 - ours
    assert (str(error), error.reason, error.hint) == ("missing; create it", "missing", "create it")
