"""What the launch path takes from typing, collections.abc, contextlib and signal, without their price.

Rule: `import typing` alone costs as much as a whole bare interpreter (it brings re, enum, functools and
contextlib), and `signal` brings enum; a launch must feel like nothing. Type checkers see the real ones; at
run time there are the abstract classes that the interpreter has loaded already, the C half of signal, and a
small NamedTuple with the parts that jail uses: positional and keyword construction, defaults, `_fields`,
`_field_defaults`, `_make`, `_replace`, `_asdict`. tests/test_light.py holds it equal to the real one.
"""

import sys

TYPE_CHECKING = False
"""Type checkers take this name for true wherever it stands (PEP 484)."""

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import suppress
    from typing import Any, Final, NamedTuple, NoReturn, Protocol
else:
    import _signal as signal
    from _collections import _tuplegetter
    from _collections_abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    class Final:
        """An annotation that says nothing at run time, as NoReturn, Any and Protocol below."""

        def __class_getitem__(cls, item):
            return cls

    class suppress:  # noqa: N801 - contextlib's name
        """A block that ends where one of these exceptions is raised (contextlib.suppress)."""

        def __init__(self, *exceptions):
            self._exceptions = exceptions

        def __enter__(self):
            return None

        def __exit__(self, kind, error, traceback):
            return kind is not None and issubclass(kind, self._exceptions)

    class NoReturn:
        pass

    class Any:
        pass

    class Protocol:
        pass

    if sys.version_info >= (3, 14):
        from typing import NamedTuple  # annotations are evaluated later there (PEP 649)
    else:

        class _Fields(type):
            """Turns the annotated names of a class body into the places of a tuple."""

            def __new__(mcs, name, bases, body):
                fields = tuple(body.get("__annotations__", ())) if bases else ()
                body["_field_defaults"] = {field: body.pop(field) for field in fields if field in body}
                body["_fields"] = body["__match_args__"] = fields
                body["__slots__"] = ()
                for place, field in enumerate(fields):
                    body[field] = _tuplegetter(place, f"Field {place}: {field}")
                return super().__new__(mcs, name, bases or (tuple,), body)

        class NamedTuple(metaclass=_Fields):
            """A tuple whose places have names (collections.namedtuple)."""

            def __new__(cls, *values, **named):
                fields, missing = cls._fields, []
                if not named and len(values) == len(fields):
                    return tuple.__new__(cls, values)
                if len(values) > len(fields):
                    raise TypeError(f"{cls.__name__} takes {len(fields)} values, not {len(values)}")
                rest = []
                for field in fields[len(values) :]:
                    if field in named:
                        rest.append(named.pop(field))
                    elif field in cls._field_defaults:
                        rest.append(cls._field_defaults[field])
                    else:
                        missing.append(field)
                if named or missing:
                    raise TypeError(f"{cls.__name__}: unknown {sorted(named)}, missing {missing}")
                return tuple.__new__(cls, (*values, *rest))

            @classmethod
            def _make(cls, values):
                return cls(*values)

            def _asdict(self):
                return dict(zip(self._fields, self, strict=True))

            def _replace(self, **named):
                unknown = named.keys() - set(self._fields)
                if unknown:
                    raise ValueError(f"{type(self).__name__} has no {sorted(unknown)}")
                return type(self)(**{**self._asdict(), **named})

            def __getnewargs__(self):
                return tuple(self)

            def __repr__(self):
                values = ", ".join(f"{field}={value!r}" for field, value in self._asdict().items())
                return f"{type(self).__name__}({values})"


__all__ = [
    "TYPE_CHECKING",
    "Any",
    "Callable",
    "Collection",
    "Final",
    "Iterable",
    "Iterator",
    "Mapping",
    "NamedTuple",
    "NoReturn",
    "Protocol",
    "Sequence",
    "signal",
    "suppress",
]
