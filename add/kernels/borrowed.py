"""Views of parts of a flat array that count no references, which kernels make by the dozen, and copies of arrays."""

import ctypes
import math
from typing import Any

import numpy as np
from numba.core import config, types
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from add.kernels.caching import njit


def _borrowed(typingctx: Any, flat: Any, start: Any, shape: Any) -> Any:
    """Return ``flat[start:]``, as long as ``shape`` (a tuple of integers) says, in that shape.

    Nothing is checked, and the view must not outlive ``flat``. A slice with `reshape` costs more: it takes part in the
    count of references, and is made even where nothing uses it.
    """
    if not (isinstance(flat, types.Array) and flat.ndim == 1 and flat.layout == "C"):
        raise TypingError(f"borrowed: a part of {flat}, which is not flat and contiguous")
    if not all(isinstance(size, types.Integer) for size in shape):
        raise TypingError(f"borrowed: a shape of {shape}, which is no tuple of integers")
    view = types.Array(flat.dtype, len(shape), "C", readonly=not flat.mutable)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        source = make_array(flat)(context, builder, values[0])
        first = context.cast(builder, values[1], signature.args[1], types.intp)
        return _filled(context, builder, view, builder.gep(source.data, [first]), signature, values)

    return view(flat, start, shape), generate


def _filled(context: Any, builder: Any, view: Any, data: Any, signature: Any, values: Any) -> Any:
    """Return the array of a type that begins at a pointer; the last argument of the call is its shape."""
    sizes = [
        context.cast(builder, builder.extract_value(values[2], k), kind, types.intp)
        for k, kind in enumerate(signature.args[2])
    ]
    bytes_of_one = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(view.dtype)))
    strides = [bytes_of_one]
    for size in reversed(sizes[1:]):
        strides.insert(0, builder.mul(strides[0], size))
    out = make_array(view)(context, builder)
    populate_array(out, data=data, shape=sizes, strides=strides, itemsize=bytes_of_one, meminfo=None)
    return out._getvalue()


def _sliced(flat: Any, start: int, shape: tuple[int, ...]) -> Any:
    """Return the same without compilation, for a debugger."""
    return flat[start : start + math.prod(shape)].reshape(shape)


borrowed = _sliced if config.DISABLE_JIT else intrinsic(_borrowed)


@njit(error_model="numpy")
def put(values, out):
    """Copy an array of one or two dimensions to the front of another.

    ``out[:n] = values`` checks shapes and words an error: a second of every compilation, in every function that calls
    one that has it.
    """
    if values.ndim == 1:
        for i in range(values.size):
            out[i] = values[i]
    else:
        for i in range(values.shape[0]):
            for j in range(values.shape[1]):
                out[i, j] = values[i, j]


def _view_at(typingctx: Any, dtype: Any, address: Any, shape: Any) -> Any:
    """Return the array of a type and shape that begins at an address; what is there must outlive it."""
    view = types.Array(dtype.dtype, len(shape), "C")

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = context.get_data_type(view.dtype)
        return _filled(context, builder, view, builder.inttoptr(values[1], kind.as_pointer()), signature, values)

    return view(dtype, address, shape), generate


def _viewed(dtype: Any, address: int, shape: tuple[int, ...]) -> Any:
    """Return the same without compilation, for a debugger."""
    room = (ctypes.c_char * (np.dtype(dtype).itemsize * math.prod(shape))).from_address(int(address))
    return np.ndarray(shape, dtype, room)


view_at = _viewed if config.DISABLE_JIT else intrinsic(_view_at)


def _place_of(typingctx: Any, array: Any) -> Any:
    """Return the address of an array of floats, which must outlive its use; of none that is not contiguous.

    It is another function's argument where it is taken, as numba lets go of what is not used any more.
    """
    if not (isinstance(array, types.Array) and array.dtype == types.float64 and array.layout == "C"):
        raise TypingError(f"place_of: {array}, which is no contiguous array of floats")

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = make_array(array)(context, builder, values[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.uint64))

    return types.uint64(array), generate


place_of = (lambda array: array.ctypes.data) if config.DISABLE_JIT else intrinsic(_place_of)


@njit(error_model="numpy")
def floats_at(address, shape):
    """Return the array of floats of a shape that begins at an address."""
    return view_at(np.float64, address, shape)


def _uncounted_all(typingctx: Any, values: Any) -> Any:
    """Return an array, or a tuple of arrays, of tuples and of what is neither, as views that count no references.

    Their owners must outlive them, as a function's arguments outlive its call: no view may be returned to Python.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _uncounted(context, builder, values, arguments[0])

    return values(values), generate


uncounted = (lambda values: values) if config.DISABLE_JIT else intrinsic(_uncounted_all)


def _uncounted(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return a value of a type without the owners of its arrays."""
    if isinstance(kind, types.Array):
        view = make_array(kind)(context, builder, value)
        view.meminfo, view.parent = view.meminfo.type(None), view.parent.type(None)
        return view._getvalue()
    if isinstance(kind, types.BaseTuple):  # type: ignore[attr-defined]
        for k, part in enumerate(kind):
            one = _uncounted(context, builder, part, builder.extract_value(value, k))
            value = builder.insert_value(value, one, k)
    return value
