"""Objects of scenes that files and packages outside `add` bring: classes, known by their names in scenes."""

import builtins
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar, get_args

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from add.errors import AddError, InputError
from add.machine.foreign import first_line, load_installed, version_of
from add.scene.spec import kinds
from add.scene.spec.common import Spec, objects_in
from add.scene.spec.kinds import problem

#: The JSON Schema of what no extension brings.
NOTHING: dict[str, Any] = {"not": {}}
_Given = TypeVar("_Given")


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for sub in kind.__subclasses__():
        yield sub
        yield from _below(sub)


def _dumped(item: Spec, info: core_schema.SerializationInfo) -> dict[str, Any]:
    return item.model_dump(by_alias=bool(info.by_alias), mode=info.mode)


class Extension(Spec):
    """Base of the classes that a kind of object may have beside those of the format.

    A subclass with a name, ``type: Literal["my-spring"] = "my-spring"``, is known as soon as it is defined: in scenes,
    in the JSON Schema, in errors. Its fields are documented, checked and written back like all others, and its numbers
    are parameters. Classes without a name are bases of such.
    """

    type: kinds.Text = Field(description="name of the extension")

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse a class whose name no scene could write, or that is of no kind."""
        super().__pydantic_init_subclass__(**kwargs)
        name, given = cls.own_name(), "type" in cls.__annotations__
        where = f"{cls.__module__}.{cls.__qualname__}"
        if given and not re.fullmatch(r"\w[\w +:-]*", name or ""):
            found = repr(name) if name is not None else str(cls.__annotations__["type"])
            expected = 'Literal["my-spring"]: one name of letters, digits, +, -, : and spaces'
            raise InputError("an extension needs a name of its own", place=f"{where}.type", found=found,
                             expected=expected)  # fmt: skip
        if name is not None and Extension in cls.__bases__:
            raise InputError("an extension derives from one of the kinds that there are", place=where,
                             found="Extension", expected="CouplingExtension, BodyExtension, ...")  # fmt: skip

    @classmethod
    def own_name(cls) -> str | None:
        """Return the name under which scenes use the class; None of bases."""
        field = cls.model_fields.get("type")
        words = get_args(field.annotation) if field is not None else ()
        return words[0] if len(words) == 1 and isinstance(words[0], str) else None

    @classmethod
    def known(cls) -> dict[str, builtins.type[Self]]:
        """Return the classes with a name, by their names.

        Raises
        ------
        InputError
            If two classes have one name.
        """
        out: dict[str, builtins.type[Self]] = {}
        for kind in _below(cls):
            name = kind.own_name()
            if name is None:
                continue
            other = out.get(name)
            if other is not None and (other.__module__, other.__qualname__) != (kind.__module__, kind.__qualname__):
                found = " and ".join(sorted(f"{one.__module__}.{one.__qualname__}" for one in (other, kind)))
                raise InputError(f"two extensions have the name '{name}'", found=found, expected="one")
            out[name] = kind
        return out

    @classmethod
    def named(cls, name: str) -> builtins.type[Self] | None:
        """Return the class of that name, also of an extension that is installed or that the environment names."""
        extension = cls.known().get(name)
        if extension is None:
            load_installed()
            extension = cls.known().get(name)
        return extension

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate an object of a base as one of the class that it names."""
        schema = handler(source)
        if cls.own_name() is not None or source is not cls:
            return schema
        return core_schema.no_info_plain_validator_function(
            cls._chosen,
            serialization=core_schema.plain_serializer_function_ser_schema(_dumped, info_arg=True),
            metadata={"pydantic_js_functions": [cls._json_schema]},
        )

    @classmethod
    def _chosen(cls, data: Any) -> Any:
        if isinstance(data, cls):
            return data
        name = data.get("type") if isinstance(data, dict) else None
        kind = cls.named(name) if isinstance(name, str) else None
        if kind is None:
            words = ", ".join(f"'{word}'" for word in cls.known()) or "that of an extension: none is there"
            found = "no name" if name is None else repr(name)
            raise problem("no extension has this name", key="type", found=found, expected=words)
        return kind.model_validate(data)

    def __str__(self) -> str:
        return self.own_name() or type(self).__name__

    @classmethod
    def _json_schema(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        kinds = [handler(kind.__pydantic_core_schema__) for kind in cls.known().values()]
        return {"anyOf": kinds} if kinds else NOTHING


@contextmanager
def blamed(item: object, place: str) -> Iterator[None]:
    """Name the extension whose code fails, and the line; errors that `add` raises on purpose stay as they are.

    Raises
    ------
    InputError
        If ``item`` is an extension and anything else is raised within.
    """
    try:
        yield
    except AddError:
        raise
    except Exception as error:
        if not isinstance(item, Extension):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        found = f"{first_line(error)} at {last.filename}:{last.lineno}"
        raise InputError(f"the extension '{item}' fails", place=place, found=found) from error


def answer(
    kind: builtins.type[_Given], item: Extension, place: str, ask: Callable[..., object], *about: object
) -> _Given:
    """Return what a method of an extension gives, which has to be of a kind; see `blamed`."""
    with blamed(item, place):
        given = ask(*about)
        if not isinstance(given, kind):
            raise TypeError(f"it gives an object of {type(given).__name__}, not of {kind.__name__}")
        return given


def extension_versions(spec: Spec) -> dict[str, str]:
    """Return "extension NAME" -> version and hash of its file, of all extensions in a spec."""
    extensions = (item for _, item in objects_in(spec, "") if isinstance(item, Extension))
    return {f"extension {item}": version_of(type(item).__module__) for item in extensions}
