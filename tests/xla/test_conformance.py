"""Both platforms give XLA's results, from text, from protos, and from text printed again."""

import pytest
from support import xla_cases

import cyxla
from cyxla.errors import HloParseError, OpError, UnimplementedError
from cyxla.xla.hlo import HloModule, parse_module

CASES = [pytest.param(case, id=case["id"]) for case in xla_cases.index()]
FORMS = {
    "text": lambda case: xla_cases.read(case["id"] + "/program.hlo").decode(),
    "proto": lambda case: xla_cases.read(case["id"] + "/program.pb"),
    "printed": lambda case: parse_module(FORMS["text"](case)).to_text(),
    "proto again": lambda case: HloModule.from_text(FORMS["text"](case)).to_proto(),
}


def check(case, executable):
    args, expected = xla_cases.arrays(case)
    results = xla_cases.flatten(executable(*args))
    assert len(results) == len(expected)
    for got, want, tolerance in zip(results, expected, case["tol"], strict=True):
        xla_cases.assert_close(got, want, tolerance["rtol"], tolerance["floor"], case.get("zero_sign", False))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_interpreter(case, form):
    check(case, cyxla.compile(FORMS[form](case), platform="interpreter"))


@pytest.mark.parametrize("case", CASES)
def test_cpu_is_right_or_names_the_unsupported_opcode(case):
    try:
        executable = cyxla.compile(FORMS["text"](case), platform="cpu")
    except UnimplementedError as error:
        message = error.message
    else:
        check(case, executable)
        return
    assert any(opcode in message for opcode in case["opcodes"])


@pytest.mark.parametrize("case", xla_cases.grammar()["valid"], ids=lambda c: c["id"])
def test_printing_is_a_fixed_point(case):
    once = parse_module(case["text"]).to_text()
    assert parse_module(once).to_text() == once
    squeezed = "".join(once.split())
    assert "".join(parse_module(case["canonical"]).to_text().split()) == squeezed
    for part in case["must"]:
        assert "".join(part.split()) in squeezed


@pytest.mark.parametrize("case", xla_cases.grammar()["malformed"], ids=lambda c: c["id"])
def test_errors_of_malformed_text_name_the_position(case):
    with pytest.raises(HloParseError) as caught:
        parse_module(case["text"])
    if case["lines"]:
        assert caught.value.line in case["lines"]
        assert isinstance(caught.value.column, int)


@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
@pytest.mark.parametrize("case", xla_cases.grammar()["semantic"], ids=lambda c: c["id"])
def test_ill_typed_programs_are_refused(case, platform):
    with pytest.raises(OpError):
        cyxla.compile(case["text"], platform=platform)
