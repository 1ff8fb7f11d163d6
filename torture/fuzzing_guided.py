"""The same promises, with inputs that atheris steers towards code that was not reached yet::

    uv run --group fuzz python -m torture.fuzzing_guided "metadata in YAML" -max_total_time=60

The first argument names a promise, the others are those of libFuzzer. An input that breaks the
promise ends the run with its traceback.
"""

from __future__ import annotations

import sys
from typing import Any


def main(arguments: list[str]) -> None:
    """Runs until libFuzzer ends the process."""
    import atheris  # type: ignore[import-untyped]  # the group fuzz, seldom installed
    from hypothesis import HealthCheck, given, settings

    # What is imported in here reports the branches that it takes, and much is imported on use.
    with atheris.instrument_imports(include=["lilux", "rye"]):
        from torture.fuzzing import everything

        fuzzes = {fuzz.name: fuzz for fuzz in everything()}
        if len(arguments) < 2 or arguments[1] not in fuzzes:
            sys.exit(f"name one of: {', '.join(fuzzes)}")
        fuzz = fuzzes[arguments[1]]
        with fuzz.opened() as check:

            @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
            @given(fuzz.inputs)
            def attempt(value: Any) -> None:
                check(value)

            atheris.Setup([arguments[0], *arguments[2:]], attempt.hypothesis.fuzz_one_input)  # type: ignore[attr-defined]  # is there
            atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
