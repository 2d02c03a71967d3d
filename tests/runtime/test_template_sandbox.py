from __future__ import annotations

import json
import time
from typing import Any

import jinja2
import pytest

from radixlm.runtime.template_budget import LimitExceeded, Refused, TemplateLimits
from radixlm.runtime.template_sandbox import SandboxedTemplate

MESSAGES = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Yo", "tool_calls": [{"a": "ü<"}]},
]


def render(source: str, **variables: Any) -> str:
    return SandboxedTemplate(source).render({"messages": MESSAGES, **variables})


DOUBLING = (
    "{% set ns = namespace(x=START) %}{% for i in range(60) %}{% set ns.x = STEP %}{% endfor %}"
)
BOMBS = {
    "nested loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "a range too long": "{% for i in range(10**9) %}{% endfor %}",
    "output in loops": "{% for i in range(99999) %}" + "x" * 1000 + "{% endfor %}",
    "doubling by ~": DOUBLING.replace("START", "'aa'").replace("STEP", "ns.x ~ ns.x"),
    "doubling by +": DOUBLING.replace("START", "'aa'").replace("STEP", "ns.x + ns.x"),
    "doubling a list": DOUBLING.replace("START", "[1]").replace("STEP", "ns.x + ns.x"),
    "doubling a nest": DOUBLING.replace("START", "[1]").replace("STEP", "[ns.x, ns.x]") + "{{ ns.x }}",
    "doubling a map": DOUBLING.replace("START", "{}").replace("STEP", "{'a': ns.x, 'b': ns.x}") + "{{ ns.x|tojson }}",
    "doubling by dict()": DOUBLING.replace("START", "{}").replace("STEP", "dict(a=ns.x, b=ns.x)"),
    "doubling a block": DOUBLING.replace("{% set ns.x = STEP %}", "{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = y %}").replace("START", "'aa'"),
    "squaring": DOUBLING.replace("START", "2").replace("STEP", "ns.x * ns.x"),
    "a long string": "{{ 'a' * 10**12 }}",
    "a long list": "{{ 10**9 * [1] }}",
    "a tower": "{{ 9 ** 99999 }}",
    "replace by method": "{% set x = 'a' * 1000000 %}{{ x.replace('a', x) }}",
    "replace by filter": "{% set x = 'a' * 1000000 %}{{ x|replace('a', x) }}",
    "join by method": "{% set x = 'a' * 100000 %}{{ x.join(x) }}",
    "join by filter": "{% set x = 'a' * 100000 %}{{ range(99999)|join(x) }}",
    "indent many lines": "{% set x = 'a\n' * 1000000 %}{{ x|indent(900) }}",
    "sorting in a loop": "{% for i in range(99999) %}{% set y = range(99999)|sort %}{% endfor %}",
    "splitting in a loop": "{% set x = 'a ' * 1000000 %}{% for i in range(99999) %}{% set y = x.split(' ') %}{% endfor %}",
    "slicing in a loop": "{% set x = 'a' * 3000000 %}{% for i in range(99999) %}{% set y = x[1:] %}{% endfor %}",
    "calling twice": "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "a long template": "x" * 70_000,
    "many statements": "{% set x = 1 %}" * 3000,
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_template_bomb_is_stopped_within_its_time(name: str) -> None:
    began_s = time.thread_time()
    with pytest.raises(LimitExceeded if "range too" not in name else OverflowError):
        SandboxedTemplate(BOMBS[name], TemplateLimits(cpu_s=0.2)).render({})
    assert time.thread_time() - began_s < 1.5


def test_the_clock_stops_what_no_count_does() -> None:
    limits = TemplateLimits(steps=10**9, cpu_s=0.05)
    with pytest.raises(LimitExceeded, match=r"0\.05 s of computing"):
        SandboxedTemplate(BOMBS["nested loops"], limits).render({})


ESCAPES = {
    "class": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "class by name": "{{ ''['__class__'] }}",
    "attr filter": "{{ ''|attr('__class__') }}",
    "globals of a function": "{{ raise_exception.__globals__ }}",
    "init of a helper": "{{ cycler.__init__.__globals__.os.system('true') }}",
    "format filter": "{{ '%s'|format(1) }}",
    "generator frame": "{{ (messages|map('upper')).gi_frame }}",
    "append": "{{ messages.append(1) }}",
    "update": "{{ messages[0].update({'role': 'x'}) }}",
    "import": "{% import 'os' as os %}",
    "include": "{% include '/etc/passwd' %}",
    "fromkeys": "{{ dict.fromkeys(range(9)) }}",
    "endless nest": "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
    "endless macro": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "endless loop": "{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
    "deep brackets": "{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}",
    "a huge number": "{{ " + "9" * 20_000 + " }}",
    "lipsum": "{{ lipsum(n=10000) }}",
}


@pytest.mark.parametrize("name", ESCAPES)
def test_a_way_out_of_the_sandbox_is_an_error_or_empty(name: str) -> None:
    try:
        text = render(ESCAPES[name])
    except (jinja2.TemplateError, TypeError, ValueError, RecursionError):
        return
    assert text == "", "an unsafe attribute is undefined at most"


MUCH_FROM_LITTLE = {
    "format": "{{ '{0.__class__}'.format(1) }}",
    "format width": "{{ '{:10000000000}'.format(1) }}",
    "format by %": "{{ '%10000000000d' % 1 }}",
    "center": "{{ 'a'.center(10**10) }}",
    "zfill": "{{ 'a'.zfill(10**10) }}",
    "to_bytes": "{{ (1).to_bytes(10**10, 'big') }}",
    "encode": "{{ 'a'.encode() }}",
}


@pytest.mark.parametrize("name", MUCH_FROM_LITTLE)
def test_what_makes_much_from_little_is_refused_before_it_works(name: str) -> None:
    with pytest.raises(jinja2.exceptions.SecurityError):
        render(MUCH_FROM_LITTLE[name])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ messages[0]['content'] ~ 1 ~ none ~ true }}", "Hi1NoneTrue"),
        ("{% for m in messages %}{{ loop.index }}{{ m.role }}{{ ',' if not loop.last }}{% endfor %}", "1user,2assistant"),
        ("{% for m in messages if m.role == 'user' %}{{ m.content }}{% else %}none{% endfor %}", "Hi"),
        ("{% for m in missing %}x{% else %}none{% endfor %}", "none"),
        ("{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% endfor %}", "a1b2"),
        ("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 3 %}{% break %}{% endif %}{{ i }}{% endfor %}", "013"),
        ("{% set ns = namespace(found=false) %}{% for m in messages %}{% set ns.found = true %}{% endfor %}{{ ns.found }}", "True"),
        ("{% macro f(x, y='b') %}<{{ x }}{{ y }}>{% endmacro %}{{ f('a') }}{{ f('c', y='d') }}", "<ab><cd>"),
        ("{% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}", "123"),
        ("{{ messages[1].tool_calls|tojson }}", '[{"a": "ü<"}]'),
        ("{{ {'b': 1, 'a': [1]}|tojson(indent=2, sort_keys=true) }}", json.dumps({"b": 1, "a": [1]}, indent=2, sort_keys=True)),
        ("{{ 'a\n b\n\nc\n'|indent(2) }}", "a\n   b\n\n  c\n"),
        ("{{ 'a\nb'|indent(2, true) }}", "  a\n  b"),
        ("{{ ' x '|trim }}{{ ' y '.strip() }}{{ 'abc'[1:] }}{{ 'abc'[::-1] }}", "xybccba"),
        ("{{ 'a,b'.split(',')|join('-') }}{{ 'aXbX'.replace('X', '', 1) }}{{ 'aX'|replace('X', 'y') }}", "a-babXay"),
        ("{{ messages|map(attribute='role')|join(', ') }}", "user, assistant"),
        ("{{ messages|selectattr('role', 'equalto', 'user')|list|length }}", "1"),
        ("{{ [3, 1, 2]|sort|first }}{{ [1, 2]|last }}{{ {'b': 1, 'a': 2}|dictsort }}", "12[('a', 2), ('b', 1)]"),
        ("{{ x|default('d') }}{{ none|default('e', true) }}{{ 3|string + '4' }}{{ '5'|int + 1 }}", "de346"),
        ("{{ 'q' if x is defined else 'z' }}{{ 1 in [1, 2] }}{{ 'a' in 'abc' }}{{ 7 // 2 }}{{ 7 % 4 }}{{ 2 ** 3 }}", "zTrueTrue338"),
        ("a\n{% if true %}\nb\n{% endif %}\n  {%- set x = 1 %}\nc", "a\nb\nc"),
        ("{% generation %}x{{ 1 }}{% endgeneration %}", "x1"),
        ("{% filter upper %}a{{ 'b' }}{% endfilter %}{% set z %}q{{ 1 }}{% endset %}{{ z }}", "ABq1"),
        ("{% set a, b = 1, 2 %}{{ a + b }}{{ (1, 2) }}{{ [] }}{{ {} }}", "3(1, 2)[]{}"),
        ("{{ strftime_now('%Y')|length }}{% set j = joiner(',') %}{{ j() }}a{{ j() }}b{% set c = cycler(1, 2) %}{{ c.next() }}", "4a,b1"),
    ],
)  # fmt: skip
def test_what_chat_templates_use_works_as_in_jinja(source: str, expected: str) -> None:
    assert render(source) == expected


def test_raise_exception_refuses_with_its_message() -> None:
    with pytest.raises(Refused, match="roles must alternate"):
        render("{{ raise_exception('roles must alternate') }}")


def test_a_template_renders_again_with_a_fresh_budget() -> None:
    template = SandboxedTemplate("{% for i in range(n) %}x{% endfor %}", TemplateLimits(steps=100))
    assert [len(template.render({"n": 40})) for _ in range(5)] == [40] * 5
    with pytest.raises(LimitExceeded, match="100 steps"):
        template.render({"n": 99})
    assert template.render({"n": 1}) == "x"
