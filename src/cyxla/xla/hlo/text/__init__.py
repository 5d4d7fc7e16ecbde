"""HLO text: parser and printer."""

from cyxla.xla.hlo.text.parser import parse_module
from cyxla.xla.hlo.text.printer import instruction_to_text, to_text
from cyxla.xla.hlo.text.shapes import parse_shape

__all__ = ["instruction_to_text", "parse_module", "parse_shape", "to_text"]
