"""Random numbers that are drawn until they fit, against their distributions."""

import numpy as np
import pytest
import scipy.stats

from cyxla.core.framework.apply import apply_op
from cyxla.errors import ShapeError

SEED = [3, 4]
MANY = 4000


def as_expected(sample, distribution):
    """Kolmogorov and Smirnov would see one of a thousand right samples as wrong; these seeds are fixed."""
    assert scipy.stats.kstest(sample, distribution.cdf).pvalue > 1e-3


def counts_as_expected(sample, distribution):
    values, seen = np.unique(sample, return_counts=True)
    chance = distribution.pmf(values) * len(sample)
    kept = chance > 5
    wide = (seen[kept] - chance[kept]) ** 2 / chance[kept]
    assert wide.sum() < scipy.stats.chi2(kept.sum()).ppf(0.999)
    assert distribution.pmf(values).min() > 1e-8


@pytest.mark.parametrize("alpha", [0.3, 1.0, 1.5, 20.0])
def test_gamma(alpha):
    for op, more in (("RandomGamma", ()), ("StatelessRandomGammaV2", (SEED,))):
        attrs = {} if more else {"seed": 5, "seed2": 6}
        as_expected(apply_op(op, [MANY], *more, np.float64(alpha), **attrs), scipy.stats.gamma(alpha))


@pytest.mark.parametrize("rate", [0.0, 0.7, 9.0, 10.0, 300.0])
def test_poisson(rate):
    found = apply_op("RandomPoissonV2", [MANY], np.float32(rate), seed=5, dtype="int64")
    assert found.dtype == np.int64
    counts_as_expected(found, scipy.stats.poisson(rate))


@pytest.mark.parametrize("count, chance", [(5, 0.3), (5, 0.9), (1000, 0.4), (200, 0.99), (7, 0.0), (7, 1.0), (0, 0.5)])
def test_binomial(count, chance):
    found = apply_op("StatelessRandomBinomial", [MANY], SEED, np.float64(count), np.float64(chance), dtype="int32")
    counts_as_expected(found, scipy.stats.binom(count, chance))


@pytest.mark.parametrize("low, high", [(-1.0, 2.0), (3.0, 9.0), (-np.inf, 0.0), (20.0, 21.0)])
def test_truncated_normal(low, high):
    mean, spread = np.float64(1), np.float64(2)
    ends = np.float64(low), np.float64(high)
    found = apply_op("ParameterizedTruncatedNormal", [MANY], mean, spread, *ends, seed=1)
    as_expected(found, scipy.stats.truncnorm((low - 1) / 2, (high - 1) / 2, 1, 2))
    again = apply_op("StatelessParameterizedTruncatedNormal", [MANY], SEED, mean, spread, *ends)
    as_expected(again, scipy.stats.truncnorm((low - 1) / 2, (high - 1) / 2, 1, 2))


def test_shapes_end_with_those_of_parameters():
    alpha = np.array([[1.0], [50.0]])
    assert apply_op("RandomGamma", [3], alpha).shape == (3, 2, 1)
    assert apply_op("RandomGamma", [3], alpha[:0]).shape == (3, 0, 1)
    assert apply_op("RandomPoissonV2", [0], alpha).shape == (0, 2, 1)
    found = apply_op("StatelessRandomGammaV2", [400, 2, 1], SEED, alpha)
    np.testing.assert_allclose(found.mean(axis=0), alpha, rtol=0.2)
    with pytest.raises(ShapeError, match="end with"):
        apply_op("StatelessRandomGammaV2", [2, 3], SEED, alpha)


def test_equal_seeds_give_equal_numbers_for_any_shape():
    few, many = (apply_op("StatelessRandomGammaV2", [n], SEED, np.float64(2)) for n in (3, 9))
    np.testing.assert_array_equal(few, many[:3])


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_invalid_distributions_give_nan(bad):
    assert np.isnan(apply_op("RandomGamma", [2], np.float64(bad))).all()
    assert np.isnan(apply_op("RandomPoissonV2", [2], np.float64(bad), dtype="double")).all()
