"""Ops on the session and on Python functions, which have no gradients."""

from cyxla.core.framework.gradient import no_gradient

no_gradient("DeleteSessionTensor", "GetSessionHandle", "GetSessionHandleV2", "GetSessionTensor")
no_gradient("PyFunc", "PyFuncStateless")
