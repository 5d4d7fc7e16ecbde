"""Nothing flows back through random numbers of a generator that is a variable."""

from cyxla.core.framework.gradient import no_gradient

no_gradient(
    "RngReadAndSkip", "RngSkip", "StatefulStandardNormalV2", "StatefulTruncatedNormal", "StatefulUniform",
    "StatefulUniformFullInt", "StatefulUniformInt",
)  # fmt: skip
