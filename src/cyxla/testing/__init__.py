"""Conformance tests of backends: ``python -m cyxla.testing --backend NAME``, or pytest with its `plugin`."""
