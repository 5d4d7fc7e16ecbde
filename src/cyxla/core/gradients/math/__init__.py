"""Gradients of mathematics: functions of elements, products, reductions, linear algebra, transforms."""
