"""Random numbers from a generator in a variable, which have no gradients."""

from cyxla.core.framework.gradient import no_gradient

no_gradient(
    "RngReadAndSkip", "RngSkip", "StatefulStandardNormalV2", "StatefulTruncatedNormal", "StatefulUniform",
    "StatefulUniformFullInt", "StatefulUniformInt",
)  # fmt: skip
