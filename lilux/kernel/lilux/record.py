"""Records: like dataclasses, but faster to define.

``@dataclass`` compiles new code for each class, most of a millisecond for a frozen one with slots,
and its module imports a dozen others. A short program pays that for every class, also for those
that it never uses. All classes of :class:`Record` share the same methods::

    class Point(Record, frozen=True):
        x: int
        y: int = 0

A class with many objects gets an ``__init__`` of its own after a while, which is three times as
fast: a long-lived program creates a dozen records for each call of a tool.

Type checkers treat it as a dataclass, and so do ``dataclasses.fields``, ``asdict``, ``replace``
and ``is_dataclass``. There is no ``__post_init__``, no ``InitVar``, and a record cannot extend
another one.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, dataclass_transform

    R = TypeVar("R", bound="Record")
else:

    def dataclass_transform(**_: object) -> Callable[[type], type]:
        """Do nothing; only type checkers use it, and importing typing is slow."""
        return lambda kind: kind


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


_MISSING: Any = _Missing()
_MANY = 100


class _Field:
    __slots__ = ("default", "factory", "shown")

    def __init__(self, default: Any, factory: Any = _MISSING, *, shown: bool = True) -> None:
        self.default = default
        self.factory = factory
        self.shown = shown


def field(
    *,
    default: Any = _MISSING,
    default_factory: Callable[[], Any] = _MISSING,
    repr: bool = True,  # noqa: A002 - as dataclasses call it
) -> Any:
    """Describe a field, as ``dataclasses.field`` does."""
    return _Field(default, default_factory, shown=repr)


@dataclass_transform(field_specifiers=(field,))
class _RecordType(type):
    """Turns annotations into slots, without compiling code."""

    _fields: dict[str, _Field]
    _put: dict[str, Callable[[object, Any], None]]
    _defaults: dict[str, Any]
    _factories: dict[str, Callable[[], Any]]
    _made: list[int]
    """The number of objects, as long as they are made by the common ``__init__``."""
    _kw_only: bool

    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        frozen: bool = False,
        kw_only: bool = False,
    ) -> Any:
        fields: dict[str, _Field] = {}
        for key in namespace.get("__annotations__", ()):
            given = namespace.pop(key, _MISSING)
            if given.__class__.__hash__ is None:
                shared = "all objects would share this default"
                raise ValueError(f"{name}.{key}: {shared}; use a default_factory")
            fields[key] = given if isinstance(given, _Field) else _Field(given)
        for base in bases:
            if isinstance(base, _RecordType) and base is not Record:
                raise TypeError(f"the record {name} cannot extend the record {base.__name__}")
        if frozen:
            bases = tuple([_Frozen if base is Record else base for base in bases])
        namespace["__slots__"] = tuple(fields)
        made = super().__new__(cls, name, bases, namespace)
        made._fields = fields
        made._kw_only = kw_only
        return made

    def __getattr__(cls, name: str) -> Any:
        """Build the tables for ``__init__`` when the first object is created."""
        if name not in ("_put", "_defaults", "_factories", "_made"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        if not cls._fields:
            return {} if name != "_made" else [0]  # not stored: all records would inherit it
        fields = cls._fields.items()
        cls._put = {key: getattr(cls, key).__set__ for key, _ in fields}
        cls._defaults = {key: one.default for key, one in fields if one.default is not _MISSING}
        cls._made = [0]
        cls._factories = {key: one.factory for key, one in fields if one.factory is not _MISSING}
        return cls.__dict__[name]


class _DataclassFields:
    """The fields for the ``dataclasses`` module, built on use."""

    def __get__(self, instance: object, owner: _RecordType) -> dict[str, Any]:
        return _dataclass_fields(owner)


class Record(metaclass=_RecordType):
    """The base of all records; see the module docstring."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # as for a mutable dataclass

    if not TYPE_CHECKING:
        __dataclass_fields__ = _DataclassFields()

        def __init__(self, *args: Any, **given: Any) -> None:
            kind = type(self)
            puts = kind._put
            made = kind._made
            made[0] += 1
            if made[0] == _MANY:
                kind.__init__ = _own_init(kind)
            if len(args) == len(puts) and not given and not kind._kw_only:
                for put, value in zip(puts.values(), args, strict=True):
                    put(self, value)
                return
            if args:
                given = _by_name(kind, args, given)
            if len(given) < len(puts):
                for key, make in kind._factories.items():
                    if key not in given:
                        given[key] = make()
                given = {**kind._defaults, **given}
            if len(given) != len(puts):
                _refuse_arguments(kind, given)
            try:
                for key, value in given.items():
                    puts[key](self, value)
            except KeyError:
                _refuse_arguments(kind, given)

    def __repr__(self) -> str:
        kind = type(self)
        shown = (f"{key}={getattr(self, key)!r}" for key, one in kind._fields.items() if one.shown)
        return f"{kind.__qualname__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        names = type(self)._fields
        # As in a dataclass, a field that is the same object is equal.
        return [getattr(self, name) for name in names] == [getattr(other, name) for name in names]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), {key: getattr(self, key) for key in type(self)._fields})


class _Frozen(Record):
    """The base of frozen records, replacing :class:`Record`."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(f"{type(self).__name__} is frozen: cannot change {name!r}")

        def __delattr__(self, name: str) -> None:
            raise AttributeError(f"{type(self).__name__} is frozen: cannot change {name!r}")

        def __hash__(self) -> int:
            return hash(tuple([getattr(self, key) for key in type(self)._fields]))


def _own_init(kind: _RecordType) -> Callable[..., None]:
    """Compile what the common ``__init__`` does for this class; it refuses the same arguments."""
    frozen = issubclass(kind, _Frozen)
    names: dict[str, Any] = {"_missing": _MISSING, "_kind": kind, "_refuse": _refuse_call}
    parameters, body = [], []
    # No field begins with an underscore.
    unfit = ["_rest", "_more"]
    for key, one in kind._fields.items():
        value = key
        if one.factory is not _MISSING:
            names[f"_make_{key}"] = one.factory
            value = f"_make_{key}() if {key} is _missing else {key}"
        elif one.default is not _MISSING:
            names[f"_default_{key}"] = one.default
        else:
            unfit.append(f"{key} is _missing")
        parameters.append(
            f"{key}=_default_{key}" if f"_default_{key}" in names else f"{key}=_missing"
        )
        names[f"_put_{key}"] = kind._put[key]
        body.append(f"  _put_{key}(self, {value})" if frozen else f"  self.{key} = {value}")
    given = ", ".join(f"{key!r}: {key}" for key in kind._fields)
    parameters.insert(0 if kind._kw_only else len(parameters), "*_rest")
    lines = [
        f"def make({', '.join(names)}):",
        f" def own(self, {', '.join(parameters)}, **_more):",
        f"  if {' or '.join(unfit)}:",
        f"   _refuse(_kind, _rest, {{{given}, **_more}})",
        *body,
        " return own",
    ]
    scope: dict[str, Any] = {}
    exec("\n".join(lines), scope)  # noqa: S102 - the names of fields, which are identifiers
    own: Callable[..., None] = scope["make"](**names)
    own.__qualname__ = kind.__name__  # as Python's own message begins
    return own


def _refuse_call(kind: _RecordType, rest: tuple[Any, ...], given: dict[str, Any]) -> None:
    if rest:
        _by_name(kind, (None,) * (len(rest) + (0 if kind._kw_only else len(kind._fields))), {})
    _refuse_arguments(kind, {key: one for key, one in given.items() if one is not _MISSING})


def replaced(record: R, **changes: Any) -> R:
    """Return a copy of ``record`` with ``changes``, as ``dataclasses.replace`` does."""
    values = {key: getattr(record, key) for key in type(record)._fields}
    return type(record)(**{**values, **changes})


def _by_name(kind: _RecordType, args: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
    names = [] if kind._kw_only else list(kind._fields)[: len(args)]
    if len(names) < len(args):
        allowed = 0 if kind._kw_only else len(kind._fields)
        raise TypeError(
            f"{kind.__name__}() takes {allowed} positional arguments, but {len(args)} were given"
        )
    for name in names:
        if name in given:
            raise TypeError(f"{kind.__name__}() got multiple values for argument {name!r}")
    return dict(zip(names, args, strict=True)) | given


def _refuse_arguments(kind: _RecordType, given: dict[str, Any]) -> None:
    for name in given:
        if name not in kind._fields:
            raise TypeError(f"{kind.__name__}() got an unexpected keyword argument {name!r}")
    missing = [name for name in kind._fields if name not in given]
    raise TypeError(f"{kind.__name__}() is missing the arguments {', '.join(missing)}")


def _restored(kind: type[Record], values: dict[str, Any]) -> Record:
    return kind(**values)


def _dataclass_fields(kind: _RecordType) -> dict[str, Any]:
    import dataclasses

    described = []
    for name, one in kind._fields.items():
        options: dict[str, Any] = {"repr": one.shown, "kw_only": True}
        if one.default is not _MISSING:
            options["default"] = one.default
        if one.factory is not _MISSING:
            options["default_factory"] = one.factory
        annotation = kind.__annotations__[name]
        described.append((name, annotation, dataclasses.field(**options)))
    equivalent: Any = dataclasses.make_dataclass(kind.__name__, described)
    fields: dict[str, Any] = equivalent.__dataclass_fields__
    return fields
