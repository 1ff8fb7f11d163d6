"""Records: the behaviour of dataclasses, and its limits."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from typing import Any

import pytest
from lilux.record import Record, field, replaced


class Point(Record, frozen=True):
    x: int
    y: int = 0


class Key(Record, frozen=True, kw_only=True):
    name: str
    secret: str = field(default="", repr=False)
    uses: list[str] = field(default_factory=list)


class Counter(Record):
    count: int = 0


class Names(Record, frozen=True):
    missing: int
    kind: int = 2
    rest: list[int] = field(default_factory=list)
    more: int = 4


@pytest.fixture(params=["few objects", "many objects"], autouse=True)
def objects_before(request: pytest.FixtureRequest) -> None:
    """Run each test with the common ``__init__``, and with the one that is made for a class."""
    given: dict[Any, dict[str, Any]] = {
        Point: {"x": 1},
        Key: {"name": "a"},
        Counter: {},
        Names: {"missing": 0},
    }
    for kind, arguments in given.items():
        kind._made[0] = 0
        if "__init__" in vars(kind):
            del kind.__init__
        if request.param == "many objects":
            for _ in range(200):
                kind(**arguments)
            assert "__init__" in vars(kind)


def test_fields_are_positional_or_keyword_arguments_with_defaults() -> None:
    assert (Point(1, 2), Point(1, y=2), Point(y=2, x=1)) == (Point(x=1, y=2),) * 3
    assert Point(1).y == 0


def test_any_public_name_can_be_a_field() -> None:
    made = Names(1, rest=[3])
    assert (made.missing, made.kind, made.rest, made.more) == (1, 2, [3], 4)


def test_a_factory_creates_a_new_value_each_time() -> None:
    first, second = Key(name="a"), Key(name="b")
    first.uses.append("once")
    assert second.uses == []


@pytest.mark.parametrize(
    ("kind", "args", "given", "message"),
    [
        (Point, (), {}, "Point() is missing the arguments x"),
        (Point, (1,), {"z": 2}, "Point() got an unexpected keyword argument 'z'"),
        (Point, (1, 2), {"z": 3}, "Point() got an unexpected keyword argument 'z'"),
        (Point, (), {"x": 1, "y": 2, "z": 3}, "Point() got an unexpected keyword argument 'z'"),
        (Point, (1,), {"x": 2}, "Point() got multiple values for argument 'x'"),
        (Point, (1, 2, 3), {}, "Point() takes 2 positional arguments, but 3 were given"),
        (Key, ("a",), {}, "Key() takes 0 positional arguments, but 1 were given"),
        (Key, ("a", "b", []), {}, "Key() takes 0 positional arguments, but 3 were given"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    kind: Any, args: tuple[Any, ...], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        kind(*args, **given)
    assert str(caught.value) == message


def test_a_frozen_record_cannot_be_changed() -> None:
    point: Any = Point(1)
    with pytest.raises(AttributeError, match=r"^Point is frozen: cannot change 'x'$"):
        point.x = 2
    with pytest.raises(AttributeError, match=r"^Point is frozen: cannot change 'x'$"):
        del point.x
    assert point.x == 1


def test_a_record_has_no_other_attributes() -> None:
    counter: Any = Counter()
    counter.count = 3
    assert counter == Counter(3)
    with pytest.raises(AttributeError):
        counter.other = 1


def test_a_record_cannot_extend_another() -> None:
    kind: Any = type(Point)
    with pytest.raises(TypeError, match=r"^the record Pixel cannot extend the record Point$"):
        kind("Pixel", (Point,), {})
    bare = kind("Bare", (Record,), {})
    with pytest.raises(TypeError, match=r"^the record Pixel cannot extend the record Bare$"):
        kind("Pixel", (bare,), {})


def test_an_object_of_the_base_does_not_affect_other_records() -> None:
    kind: Any = type(Point)
    late = kind("Late", (Record,), {"__annotations__": {"x": "int"}, "x": 7})
    assert repr(Record()) == "Record()"
    assert late().x == 7


def test_a_mutable_default_is_refused() -> None:
    """All objects would share it."""
    kind: Any = type(Point)
    with pytest.raises(ValueError, match=r"^Shelf\.books: .*; use a default_factory$"):
        kind("Shelf", (Record,), {"__annotations__": {"books": "list"}, "books": []})


def test_equality_compares_the_class_and_every_field() -> None:
    assert Point(0) != Counter(0)
    assert Point(1, 2) != Point(1, 3)
    assert Point(1, 2) != (1, 2)
    number: Any = float("nan")  # not equal to itself, unlike tuples and dataclasses that contain it
    assert Point(number) == Point(number)


def test_only_a_frozen_record_is_hashable() -> None:
    assert {Point(1), Point(1), Point(2)} == {Point(1), Point(2)}
    with pytest.raises(TypeError):
        hash(Counter())


def test_the_repr_omits_marked_fields() -> None:
    assert repr(Key(name="a", secret="hush")) == "Key(name='a', uses=[])"


def test_replaced_returns_a_new_record() -> None:
    point = Point(1, 2)
    assert (replaced(point, y=5), point) == (Point(1, 5), Point(1, 2))
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        replaced(point, z=1)


def test_the_dataclasses_module_accepts_records() -> None:
    key: Any = Key(name="a", secret="b")
    kind: Any = Key
    assert dataclasses.is_dataclass(kind)
    assert [one.name for one in dataclasses.fields(key)] == ["name", "secret", "uses"]
    assert dataclasses.asdict(key) == {"name": "a", "secret": "b", "uses": []}
    assert dataclasses.replace(key, name="c") == Key(name="c", secret="b")


def test_copies_and_pickles_are_equal() -> None:
    point = Point(1, 2)
    assert (copy.copy(point), copy.deepcopy(point)) == (point, point)
    assert pickle.loads(pickle.dumps(point)) == point  # noqa: S301 - bytes of this test


def test_defining_records_loads_neither_dataclasses_nor_typing() -> None:
    script = (
        "import sys\n"
        "from lilux.record import Record\n"
        "class Point(Record, frozen=True):\n    x: int\n"
        "Point(1)\n"
        "print([name for name in ('dataclasses', 'typing', 'inspect') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
