"""The same properties, with inputs that atheris steers towards code not reached before::

    uv run --group fuzz python -m torture.fuzzing_guided "metadata in YAML" -max_total_time=60

The first argument names a property, the others are for libFuzzer. An input that fails ends the run
with a traceback.
"""

from __future__ import annotations

import sys
from typing import Any


def main(arguments: list[str]) -> None:
    """Run until libFuzzer ends the process."""
    import atheris  # type: ignore[import-untyped]  # in the dependency group fuzz, not always installed
    from hypothesis import HealthCheck, given, settings

    # Modules imported in this block report their branches; many are imported lazily.
    with atheris.instrument_imports(include=["lilux", "rye"]):
        from torture.fuzzing import everything

        fuzzes = {fuzz.name: fuzz for fuzz in everything()}
        if len(arguments) < 2 or arguments[1] not in fuzzes:
            sys.exit(f"expected a name, one of: {', '.join(fuzzes)}")
        fuzz = fuzzes[arguments[1]]
        with fuzz.opened() as check:

            @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
            @given(fuzz.inputs)
            def attempt(value: Any) -> None:
                check(value)

            atheris.Setup([arguments[0], *arguments[2:]], attempt.hypothesis.fuzz_one_input)  # type: ignore[attr-defined]  # set by hypothesis
            atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
