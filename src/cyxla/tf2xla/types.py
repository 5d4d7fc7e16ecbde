"""Conversion between TensorFlow's data types and HLO's element types."""

from __future__ import annotations

from cyxla.core.framework.types import DataType, as_data_type
from cyxla.errors import InvalidArgumentError
from cyxla.types import ElementType

_QUANTIZED_STORAGE = {"qint8": "int8", "quint8": "uint8", "qint32": "int32", "qint16": "int16", "quint16": "uint16"}
_BY_NUMPY = {t.numpy_dtype: t for t in reversed(ElementType) if t.numpy_dtype is not None}
_ELEMENTS = {
    t: _BY_NUMPY[as_data_type(_QUANTIZED_STORAGE.get(t.text, t.text)).numpy]
    for t in DataType
    if 0 < t < 100 and not t.numpy.hasobject
}
_DATA = {element: t for t, element in reversed(_ELEMENTS.items()) if not t.text.startswith("q")}


def element_type(dtype: DataType) -> ElementType:
    """Return the element type that represents a data type.

    Raises
    ------
    InvalidArgumentError
        HLO has no such type: strings, resources, variants.
    """
    if dtype not in _ELEMENTS:
        raise InvalidArgumentError(f"{dtype} is not a type of compiled code")
    return _ELEMENTS[dtype]


def data_type(element: ElementType) -> DataType:
    """Return the data type of an element type; quantised types are not recovered."""
    if element not in _DATA:
        raise InvalidArgumentError(f"{element} is not a type of graphs")
    return _DATA[element]
