"""Both platforms give XLA's results, from text, from protos, and from text printed again."""

import pytest

import cyxla
from cyxla.errors import HloParseError
from cyxla.testing import cases
from cyxla.testing.conformance.test_programs import test_ill_typed_program_is_refused, test_program
from cyxla.xla.hlo import HloModule, parse_module

__all__ = ["test_ill_typed_program_is_refused", "test_program"]  # which run here too

FORMS = {
    "proto": lambda case: cases.read(case["id"] + "/program.pb"),
    "printed": lambda case: parse_module(text(case)).to_text(),
    "proto again": lambda case: HloModule.from_text(text(case)).to_proto(),
}


def text(case):
    return cases.read(case["id"] + "/program.hlo").decode()


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", cases.index(), ids=lambda case: case["id"])
def test_forms_of_a_program(case, form):
    cases.check(case, cyxla.compile(FORMS[form](case), platform="interpreter"))


@pytest.mark.parametrize("case", cases.grammar()["valid"], ids=lambda c: c["id"])
def test_printing_is_a_fixed_point(case):
    once = parse_module(case["text"]).to_text()
    assert parse_module(once).to_text() == once
    squeezed = "".join(once.split())
    assert "".join(parse_module(case["canonical"]).to_text().split()) == squeezed
    for part in case["must"]:
        assert "".join(part.split()) in squeezed


@pytest.mark.parametrize("case", cases.grammar()["malformed"], ids=lambda c: c["id"])
def test_errors_of_malformed_text_name_the_position(case):
    with pytest.raises(HloParseError) as caught:
        parse_module(case["text"])
    if case["lines"]:
        assert caught.value.line in case["lines"]
        assert isinstance(caught.value.column, int)
