"""Random numbers: distributions, keys, and generators as arguments."""

import numpy as np
import pytest
from scipy import special, stats

import cyxla
from cyxla import random
from cyxla.errors import TraceError, UnimplementedError
from cyxla.numpy import jit

N = 3000
KEY = random.key(7)
CONTINUOUS = {
    "random": (lambda g: g.random(N), stats.uniform()),
    "random-f32": (lambda g: g.random(N, np.float32), stats.uniform()),
    "uniform": (lambda g: g.uniform(-2, [3.0] * N), stats.uniform(-2, 5)),
    "standard_normal-f32": (lambda g: g.standard_normal((3, N // 3), np.float32), stats.norm()),
    "normal": (lambda g: g.normal(1, 2, N - 1), stats.norm(1, 2)),
    "lognormal": (lambda g: g.lognormal(1, 0.5, N), stats.lognorm(0.5, scale=np.e)),
    "standard_exponential": (lambda g: g.standard_exponential(N, np.float32), stats.expon()),
    "exponential": (lambda g: g.exponential(2, N), stats.expon(scale=2)),
    "standard_gamma": (lambda g: g.standard_gamma(0.3, N), stats.gamma(0.3)),
    "gamma": (lambda g: g.gamma(2.5, 2, N), stats.gamma(2.5, scale=2)),
    "beta": (lambda g: g.beta(0.3, 0.2, N), stats.beta(0.3, 0.2)),
    "chisquare": (lambda g: g.chisquare(3, N), stats.chi2(3)),
    "noncentral_chisquare": (lambda g: g.noncentral_chisquare(3, 2.0, N), stats.ncx2(3, 2)),
    "f": (lambda g: g.f(3, 8, N), stats.f(3, 8)),
    "noncentral_f": (lambda g: g.noncentral_f(3, 8, 1.5, N), stats.ncf(3, 8, 1.5)),
    "standard_t": (lambda g: g.standard_t(3, N), stats.t(3)),
    "standard_cauchy": (lambda g: g.standard_cauchy(N), stats.cauchy()),
    "laplace": (lambda g: g.laplace(1, 2, N), stats.laplace(1, 2)),
    "logistic": (lambda g: g.logistic(1, 2, N), stats.logistic(1, 2)),
    "gumbel": (lambda g: g.gumbel(1, 2, N), stats.gumbel_r(1, 2)),
    "pareto": (lambda g: g.pareto(3, N), stats.lomax(3)),
    "power": (lambda g: g.power(3, N), stats.powerlaw(3)),
    "rayleigh": (lambda g: g.rayleigh(3, N), stats.rayleigh(scale=3)),
    "weibull": (lambda g: g.weibull(3, N), stats.weibull_min(3)),
    "triangular": (lambda g: g.triangular(-1, 0, 3, N), stats.triang(0.25, -1, 4)),
    "wald": (lambda g: g.wald(2, 3, N), stats.invgauss(2 / 3, scale=3)),
    "vonmises": (lambda g: g.vonmises(1.0, 2.0, N), stats.vonmises_line(2.0, 1.0)),
    "vonmises-flat": (lambda g: g.vonmises(0.0, 1e-6, N), stats.uniform(-np.pi, 2 * np.pi)),
    "vonmises-narrow": (lambda g: g.vonmises(1.0, 4e6, N), stats.norm(1.0, 5e-4)),
    "dirichlet": (lambda g: g.dirichlet([1.0, 2.0, 3.0], N)[:, 1], stats.beta(2, 4)),
    "multivariate_normal": (
        lambda g: g.multivariate_normal([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]], N) @ np.array([1.0, -1.0]),
        stats.norm(-1, np.sqrt(2)),
    ),
    "multivariate_normal-cholesky": (
        lambda g: g.multivariate_normal([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]], N, method="cholesky")[:, 0],
        stats.norm(1, np.sqrt(2)),
    ),
}
DISCRETE = {
    "poisson-small": (lambda g: g.poisson(3.3, N), stats.poisson(3.3)),
    "poisson-large": (lambda g: g.poisson(30.5, N), stats.poisson(30.5)),
    "binomial-small": (lambda g: g.binomial(10, 0.3, N), stats.binom(10, 0.3)),
    "binomial-likely": (lambda g: g.binomial(10, 0.9, N), stats.binom(10, 0.9)),
    "binomial-large": (lambda g: g.binomial(100, 0.7, N), stats.binom(100, 0.7)),
    "negative_binomial": (lambda g: g.negative_binomial(3, 0.4, N), stats.nbinom(3, 0.4)),
    "geometric": (lambda g: g.geometric(0.2, N), stats.geom(0.2)),
    "zipf": (lambda g: g.zipf(2.3, N), stats.zipf(2.3)),
    "zipf-steep": (lambda g: g.zipf(30.0, N), stats.zipf(30.0)),
    "logseries": (lambda g: g.logseries(0.9, N), stats.logser(0.9)),
    "hypergeometric-few": (lambda g: g.hypergeometric(7, 5, 4, N), stats.hypergeom(12, 7, 4)),
    "hypergeometric-left": (lambda g: g.hypergeometric(5, 7, 9, N), stats.hypergeom(12, 5, 9)),
    "hypergeometric-many": (lambda g: g.hypergeometric(60, 40, 70, N), stats.hypergeom(100, 60, 70)),
    "hypergeometric-great": (lambda g: g.hypergeometric(30, 10**8, 10**7, N), stats.hypergeom(10**8 + 30, 30, 10**7)),
    "multivariate_hypergeometric": (
        lambda g: g.multivariate_hypergeometric([5, 20, 30], 25, N)[:, 1], stats.hypergeom(55, 20, 25),
    ),
    "multinomial": (lambda g: g.multinomial(20, [0.2, 0.3, 0.5], N)[:, 1], stats.binom(20, 0.3)),
    "integers": (lambda g: g.integers(0, 6, N), stats.randint(0, 6)),
    "integers-i8": (lambda g: g.integers(-3, 4, N, np.int8), stats.randint(-3, 4)),
    "integers-bool": (lambda g: g.integers(0, 2, N, bool).astype(int), stats.randint(0, 2)),
    "integers-endpoint": (lambda g: g.integers(0, 7, N, np.uint8, endpoint=True), stats.randint(0, 8)),
    "integers-arrays": (lambda g: g.integers(np.full(N, -2), np.full(N, 5)), stats.randint(-2, 5)),
    "choice": (lambda g: g.choice(7, N), stats.randint(0, 7)),
    "choice-without-return": (
        lambda g: cyxla.map(lambda k: random.choice(k, 7, 2, replace=False)[1], random.split(KEY, N)),
        stats.randint(0, 7),
    ),
    "permuted": (lambda g: g.permuted(np.tile(np.arange(5), (N, 1)), axis=1)[:, 2], stats.randint(0, 5)),
    "choice-weights": (
        lambda g: g.choice(4, N, p=[0.1, 0.6, 0.0, 0.3]), stats.rv_discrete(values=(range(4), [0.1, 0.6, 0.0, 0.3])),
    ),
}  # fmt: skip
TOO_RARE = 1e-4  # significance level; the key is fixed, so the tests are deterministic


def draw_sample(function, platform="interpreter", key=KEY):
    return jit(lambda k: function(random.generator(k)), platform=platform)(key)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_distribution(name):
    function, law = CONTINUOUS[name]
    found = draw_sample(function)
    assert found.dtype == (np.float32 if name.endswith("f32") or name == "standard_exponential" else np.float64)
    assert stats.kstest(found.astype(float).ravel(), law.cdf).pvalue > TOO_RARE


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distribution(name):
    function, law = DISCRETE[name]
    found = draw_sample(function)
    if "return" not in name:
        assert found.dtype == function(np.random.default_rng(0)).dtype
    values = np.arange(int(found.min()) - 1, int(found.max()) + 2)
    expected = law.pmf(values) * N
    counts = np.array([(found == v).sum() for v in values])
    assert counts[expected == 0].sum() == 0
    many = expected > 5
    rest = [[counts[~many].sum()], [N - expected[many].sum()]]
    seen, wanted = np.append(counts[many], rest[0]), np.append(expected[many], rest[1])
    keep = wanted > 1e-6
    assert stats.chisquare(seen[keep], wanted[keep] * seen[keep].sum() / wanted[keep].sum()).pvalue > TOO_RARE


def test_words_are_the_same_on_both_platforms():
    def program(g):
        return g.random(1001), g.integers(0, 1000, (7, 11)), g.permutation(50)

    for one, other in zip(draw_sample(program), draw_sample(program, "cpu"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_numbers_are_nearly_the_same_on_both_platforms():
    def program(g):
        return g.normal(size=1001), g.exponential(2.0, size=300)

    for one, other in zip(draw_sample(program), draw_sample(program, "cpu"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_results_do_not_depend_on_the_number_of_threads():
    program = jit(lambda k: random.generator(k).random(100_000))
    before, found = cyxla.threads(), []
    try:
        for count in (1, 4):
            cyxla.threads(count)
            found.append(program(KEY))
    finally:
        cyxla.threads(before)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("dtype", "bBhHiIlL")
def test_integers_of_the_full_range(dtype):
    info = np.iinfo(dtype)
    found = draw_sample(lambda g: g.integers(info.min, info.max, 400, dtype, endpoint=True))
    assert found.dtype == dtype
    low, high = int(found.min()), int(found.max())
    assert low < int(info.min) * 0.9 + int(info.max) * 0.1
    assert high > int(info.max) * 0.9 + int(info.min) * 0.1


def test_integers_of_a_range_beyond_32_bits():
    most = 3 * 2**62
    found = draw_sample(lambda g: g.integers(0, most, N, np.uint64))
    assert found.max() < most
    assert stats.kstest(found / most, stats.uniform().cdf).pvalue > TOO_RARE


def test_integers_between_traced_bounds():
    program = jit(lambda k, a, b: random.generator(k).integers(a, b, (200,)), platform="interpreter")
    found = program(KEY, np.int64(-3), np.int64(4))
    assert set(found) == set(range(-3, 4))
    with pytest.raises(ValueError, match="low >= high"):
        program(KEY, np.int64(3), np.int64(3))


BAD = {
    "low >= high": lambda g: g.integers(3, 3),
    "high is out of bounds for int8": lambda g: g.integers(0, 200, dtype=np.int8),
    "low is out of bounds for uint8": lambda g: g.integers(-1, 200, dtype=np.uint8),
    "scale < 0": lambda g: g.normal(0, -1.0),
    "lam < 0": lambda g: g.poisson(-1.0),
    "Probabilities do not sum": lambda g: g.choice(2, p=[0.5, 0.4]),
    "Probabilities are not non-negative": lambda g: g.choice(2, p=[1.5, -0.5]),
    "same size": lambda g: g.choice(2, p=[0.5, 0.25, 0.25]),
    "larger sample": lambda g: g.choice(2, 3, replace=False),
    "Fewer non-zero": lambda g: g.choice(2, 2, replace=False, p=[1.0, 0.0]),
    "kappa < 0": lambda g: g.vonmises(0.0, -0.0),
    "a <= 1": lambda g: g.zipf(1.0),
    "p >= 1": lambda g: g.logseries(1.0),
    "ngood . nbad < nsample": lambda g: g.hypergeometric(1, 2, 4),
    "less than 1000000000": lambda g: g.hypergeometric(10**9, 2, 4),
    "nsample > sum": lambda g: g.multivariate_hypergeometric([1, 2], 4),
    "nsample must be an integer": lambda g: g.multivariate_hypergeometric([1, 2], 2.0),
    "alpha < 0": lambda g: g.dirichlet([-1.0, 1.0]),
    "pvals must have": lambda g: g.multinomial(3, []),
    "not <class 'float'>": lambda g: g.choice(2.5),
    "left > mode": lambda g: g.triangular(1, 0, 2),
    "shape mismatch": lambda g: g.normal(np.zeros(3), size=2),
    "same length": lambda g: g.multivariate_normal([0.0], np.eye(2)),
}


@pytest.mark.parametrize("message", BAD)
def test_invalid_parameters(message):
    with pytest.raises(ValueError, match=message):
        draw_sample(BAD[message])


def test_invalid_traced_parameters():
    program = jit(lambda k, s: random.generator(k).normal(0.0, s), platform="interpreter")
    assert np.isfinite(program(KEY, 1.0))
    with pytest.raises(ValueError, match="scale < 0"):
        program(KEY, -1.0)


NOWHERE = {
    "gamma": lambda g, x: g.gamma(x),
    "beta": lambda g, x: g.beta(x, 1.0),
    "standard_t": lambda g, x: g.standard_t(x),
    "vonmises": lambda g, x: g.vonmises(0.0, x),
    "noncentral_chisquare": lambda g, x: g.noncentral_chisquare(2.0, x),
    "triangular": lambda g, x: g.triangular(0.0, x, 1.0),
    "normal": lambda g, x: g.normal(0.0, x),
}


@pytest.mark.parametrize("name", NOWHERE)
def test_undefined_distributions_give_nan(name):
    program = jit(lambda k, x: NOWHERE[name](random.generator(k), x), platform="interpreter")
    assert np.isnan(program(KEY, np.nan))
    with pytest.raises(ValueError, match=r"<|>"):
        program(KEY, -1.0)


def test_limits_of_parameters():
    found = draw_sample(
        lambda g: (g.gamma(np.inf), g.gamma(0.0), g.zipf(2000.0), g.dirichlet([0.0, 1.0]), g.logseries(0.0))
    )
    assert found[:3] == (np.inf, 0.0, 1)
    np.testing.assert_array_equal(found[3], [0.0, 1.0])
    assert found[4] == 1


def test_unsupported_dtypes():
    with pytest.raises(TypeError, match="float16"):
        draw_sample(lambda g: g.random(3, np.float16))
    with pytest.raises(TypeError, match="float32"):
        draw_sample(lambda g: g.integers(0, 3, 4, np.float32))


def test_shuffle_writes_in_place():
    def program(g, x):
        rows = x[1:]
        g.shuffle(rows)
        g.shuffle(x, axis=1)
        return x

    before = np.arange(40).reshape(8, 5)
    x = before.copy()
    found = jit(lambda k, x: program(random.generator(k), x), platform="interpreter")(KEY, x)
    np.testing.assert_array_equal(found, x)  # the caller's array is shuffled
    assert sorted(found.ravel()) == sorted(before.ravel())
    assert (np.sort(found // 5, axis=1) == np.sort(found // 5, axis=1)[:, :1]).all()  # rows stay together
    assert (found[0] // 5 == 0).all()  # the first row stays where it is
    assert not (found == before).all()


def test_out_is_written_to():
    def program(g):
        x = np.zeros_like(g.random(4), np.float32)
        view = x[1:3]
        g.random(dtype=np.float32, out=view)
        return x

    found = draw_sample(program)
    assert found[0] == found[3] == 0
    assert (found[1:3] > 0).all()


def test_sizes():
    found = draw_sample(
        lambda g: (g.random(), g.normal(size=(2, 0)), g.normal(np.zeros((2, 1)), np.ones(3)), g.choice(5))
    )
    assert [np.shape(v) for v in found] == [(), (2, 0), (2, 3), ()]


def test_unsupported_methods_name_alternatives():
    with pytest.raises(UnimplementedError, match=r"(?s)Generator\.bytes.*integers"):
        jit(lambda g: g.bytes(3), platform="interpreter")(np.random.default_rng(0))
    with pytest.raises(UnimplementedError, match="default_rng"):
        jit(lambda g: g, platform="interpreter")(np.random.RandomState(0))


@pytest.fixture
def program():
    return jit(lambda rng, x: x + rng.random(3), platform="interpreter")


def test_generators_advance_and_can_be_seeded(program):
    one, other = np.random.default_rng(5), np.random.default_rng(5)
    first, second = program(one, 1.0), program(one, 1.0)
    assert (first != second).all()
    np.testing.assert_array_equal(program(other, 1.0), first)
    np.testing.assert_array_equal(program(other, 1.0), second)


def test_all_bit_generators(program):
    for kind in (np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64):
        assert program(np.random.Generator(kind(3)), 0.0).shape == (3,)


def test_draws_differ():
    found = draw_sample(lambda g: (g.random(4), g.random(4), g.integers(0, 2**32, 4)))
    assert len({float(x) for part in found for x in part}) == 12


def test_generator_as_loop_carry():
    def program(rng):
        def body(state):
            count, rng, total = state
            return count + 1, rng, total + rng.random(2)

        return cyxla.while_loop(lambda s: s[0] < 3, body, (0, rng, np.zeros(2)))[2]

    def plain(rng):
        return rng.random(2) + rng.random(2) + rng.random(2)

    compiled, by_hand = (jit(f, platform="interpreter")(np.random.default_rng(1)) for f in (program, plain))
    np.testing.assert_allclose(compiled, by_hand, rtol=1e-15)


def test_drawing_from_an_outer_generator_in_a_loop_raises():
    def program(rng):
        return cyxla.fori_loop(0, 3, lambda i, total: total + rng.random(), 0.0)

    with pytest.raises(TraceError, match="part of the carry"):
        jit(program, platform="interpreter")(np.random.default_rng(1))


def test_keys():
    assert random.key(1).dtype == np.uint64
    assert random.key(1).shape == (2,)
    traced = jit(lambda n: random.key(n), platform="interpreter")(np.int64(1))
    np.testing.assert_array_equal(traced, random.key(1))
    made = [random.key(0), random.key(1), *random.split(random.key(1), 3), random.fold_in(random.key(1), 0),
            random.fold_in(random.key(1), 1)]  # fmt: skip
    assert len({tuple(k) for k in made}) == 7
    np.testing.assert_array_equal(random.split(KEY), random.split(KEY))
    for bad in (-1, 2**64):
        with pytest.raises(ValueError, match="not in"):
            random.key(bad)
    with pytest.raises(TypeError, match="uint64"):
        random.split(np.zeros(2))
    with pytest.raises(ValueError, match="shape"):
        random.split(np.zeros(3, np.uint64))


def test_functions_of_keys_inside_and_outside():
    outside = random.normal(KEY, 1.0, np.array([1.0, 2.0]), size=(3, 2))
    inside = jit(lambda k, s: random.normal(k, 1.0, s, size=(3, 2)))(KEY, np.array([1.0, 2.0]))
    np.testing.assert_array_equal(outside, inside)
    assert random.permutation(KEY, 5).shape == (5,)
    with pytest.raises(AttributeError, match="no attribute 'norml'"):
        _ = random.norml


def test_map_over_keys():
    found = jit(lambda k: cyxla.map(lambda row: random.random(row), random.split(k, 5)), platform="interpreter")(KEY)
    each = [jit(lambda k: random.random(k), platform="interpreter")(row) for row in random.split(KEY, 5)]
    np.testing.assert_array_equal(found, each)


def test_gradient_by_the_parameters():
    def loss(mean, deviation, key):
        return np.mean(random.normal(key, mean, deviation, size=200) ** 2)

    slope = jit(cyxla.grad(loss), platform="interpreter")(0.5, 2.0, KEY)
    draws = random.normal(KEY, 0.5, 2.0, size=200)
    np.testing.assert_allclose(slope, 2 * draws.mean(), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.3, 2.5])
def test_gradient_of_a_gamma_sample_is_at_a_fixed_quantile(shape):
    count = 40 if shape > 1 else 20_000

    def draw(a):
        return random.standard_gamma(KEY, a, size=count)

    slopes = jit(lambda a: cyxla.grad(lambda a: np.sum(np.log(draw(a))))(a))(np.full(count, shape))
    draws, step = jit(draw)(np.full(count, shape)), 1e-5
    if shape > 1:
        places = stats.gamma(shape).cdf(draws)
        moved = [np.log(stats.gamma(shape + s).ppf(places)) for s in (step, -step)]
        np.testing.assert_allclose(slopes, (moved[0] - moved[1]) / (2 * step), rtol=1e-6)
    else:  # of E[log x], estimated from as many samples
        np.testing.assert_allclose(slopes.mean(), special.polygamma(1, shape), rtol=0.02)


def test_spawn():
    one, other = draw_sample(lambda g: [child.random(3) for child in g.spawn(2)])
    assert (one != other).all()
