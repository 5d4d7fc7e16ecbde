"""All kinds of input, by name."""

from __future__ import annotations

from fuzzing.functions import Loops, Numpy
from fuzzing.graphs import GraphDef, SavedModel
from fuzzing.kind import Kind
from fuzzing.modules import Functions, Holders, Lists, Locals
from fuzzing.programs import Bounded, Hlo, Proto, StableHlo, Valid
from fuzzing.selections import Selections
from fuzzing.sizes import Sizes
from fuzzing.tiers import Tiers

ALL: tuple[type[Kind], ...] = (
    Hlo, StableHlo, Proto, GraphDef, SavedModel, Numpy, Functions, Holders, Lists, Locals, Loops, Selections,
    Sizes, Tiers, Valid, Bounded,
)  # fmt: skip
KINDS = {kind.name: kind for kind in ALL}
