"""Bitwise ops, which have no gradients."""

from cyxla.core.framework.gradient import no_gradient

no_gradient("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Invert", "LeftShift", "PopulationCount", "RightShift")
