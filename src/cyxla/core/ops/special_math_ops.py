"""Special functions."""

from cyxla.core.framework.op import op

op("BesselI0", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=None)
op("BesselI0e", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=None)
op("BesselI1", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=None)
op("BesselI1e", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=None)
op("Betainc", "a: T, b: T, x: T -> z: T", "T: {float, double}", shape=None)
op("Digamma", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=None)
op("Erfinv", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=None)
op("Igamma", "a: T, x: T -> z: T", "T: {bfloat16, half, float, double}", shape=None)
op("IgammaGradA", "a: T, x: T -> z: T", "T: {float, double}", shape=None)
op("Igammac", "a: T, x: T -> z: T", "T: {bfloat16, half, float, double}", shape=None)
op("Lgamma", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=None)
op("Ndtri", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=None)
op("Polygamma", "a: T, x: T -> z: T", "T: {float, double}", shape=None)
op("Zeta", "x: T, q: T -> z: T", "T: {float, double}", shape=None)
