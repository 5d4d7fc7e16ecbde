"""HLO for the processor: rewritten until only the opcodes that it has are left."""

from cyxla.errors import UnimplementedError
from cyxla.xla.hlo import HloModule
from cyxla.xla.passes.engine.clone import clone
from cyxla.xla.passes.engine.pipeline import HloPassPipeline
from cyxla.xla.passes.expand import batch_norm as expand_batch_norm
from cyxla.xla.passes.simplify import dce, inline
from cyxla.xla.service import CompileOptions, Compiler, Executable
from cyxla_toy import decompose
from cyxla_toy.executable import OPCODES, ToyExecutable

TYPES = {"pred", "s32", "s64", "f32"}


class ToyCompiler(Compiler):
    """Compiles for the platform "toy"."""

    platform = "toy"

    def run_hlo_passes(self, module: HloModule, options: CompileOptions) -> HloModule:
        """Decompose a module into the opcodes that the processor has."""
        rewritten = clone(module)
        pipeline = HloPassPipeline("toy")
        pipeline.add("inline", inline.run)
        pipeline.add("expand_batch_norm", expand_batch_norm.run)
        pipeline.add("decompose", decompose.run)
        pipeline.add("dce", dce.run)
        pipeline.run(rewritten)
        return rewritten

    def run_backend(self, module: HloModule, options: CompileOptions) -> Executable:
        """The executable; one error names every opcode that is left and that the processor lacks."""
        left = sorted({i.opcode for c in module.post_order() for i in c.instructions} - OPCODES)
        if left:
            raise UnimplementedError(f"the toy has no {', '.join(left)}")
        shapes = [leaf for c in module.post_order() for i in c.instructions for leaf in i.shape.leaves()]
        types = sorted({str(leaf.dtype) for leaf in shapes} - TYPES)
        if types:
            raise UnimplementedError(f"the toy has no {', '.join(types)}")
        return ToyExecutable(module)
