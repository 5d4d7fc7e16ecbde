"""String ops, which have no gradients."""

from cyxla.core.framework.gradient import no_gradient

no_gradient("AsString", "ReduceJoin", "RegexReplace", "StaticRegexFullMatch", "StringFormat", "StringJoin")
