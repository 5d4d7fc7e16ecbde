"""Types shared by all parts of cyxla: element types, shapes, layouts, literals."""

from cyxla.types.dtype import ElementType, Kind, element_type, from_numpy, is_element_type
from cyxla.types.layout import COMBINE, Layout, SplitConfig, row_major
from cyxla.types.literal import Literal
from cyxla.types.shape import MAX_ELEMENTS, OPAQUE, TOKEN, UNBOUNDED, Shape

__all__ = [
    "COMBINE", "MAX_ELEMENTS", "OPAQUE", "TOKEN", "UNBOUNDED", "ElementType", "Kind", "Layout", "Literal", "Shape",
    "SplitConfig", "element_type", "from_numpy", "is_element_type", "row_major",
]  # fmt: skip
