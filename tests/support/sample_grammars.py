"""Grammars of real formats in Lark and GBNF, each with texts inside and outside of its language."""

from __future__ import annotations

from dataclasses import dataclass

from radixlm.grammar.spec import Gbnf, Lark


@dataclass(frozen=True)
class Sample:
    """A grammar and what it says of some texts."""

    name: str
    spec: Lark | Gbnf
    passing: tuple[str, ...]
    failing: tuple[str, ...]


_JSON_IN = (
    "null", "[]", "{}", '{"a": [1, -2.5e+10, true], "b": {"c": "\\u00e9\\n"}}', '[{"x":[[[]]]}]', '"é"', "0", '["a","b"]',
)  # fmt: skip
_JSON_OUT = (
    "",
    "[",
    "[1,]",
    "{1:2}",
    "01",
    '"\\x"',
    "nul",
    '{"a" 1}',
    "[1 2]",
    "1.",
    '"a\nb"',
    "tru e",
)

ARITHMETIC = Sample(
    "arithmetic, left-recursive",
    Lark(r"""
?start: sum
?sum: product | sum "+" product -> add | sum "-" product -> sub
?product: power | product ("*" | "/") power
?power: atom "^" power | atom
?atom: NUMBER | "-" atom | NAME | "(" sum ")" | NAME "(" [sum ("," sum)*] ")"
NAME: /[a-z_]\w*/a
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
"""),
    ("1", "1+2*3", "-(a - b) / 2.5e3 ^ 2", "f()", "f(1, g(x))", "  1 - - 2 ", ".5", "1 - 2 - 3"),
    ("", "1+", "(1", "f(1,)", "1 2", "1\n+2", "+1", "a b", "()"),
)  # fmt: skip

JSON_LARK = Sample(
    "JSON",
    Lark(r"""
start: value
value: object | array | STRING | NUMBER | "true" | "false" | "null"
object: "{" [pair ("," pair)*] "}"
array: "[" [value ("," value)*] "]"
pair: STRING ":" value
STRING: "\"" (/[^"\\\x00-\x1f]/ | ESCAPE)* "\""
ESCAPE: "\\" (/["\\\/bfnrt]/ | "u" HEX~4)
HEX: "0".."9" | "a".."f" | "A".."F"
NUMBER: "-"? ("0" | /[1-9][0-9]*/) ("." /[0-9]+/)? (("e" | "E") ("+" | "-")? /[0-9]+/)?
%ignore /[ \t\n\r]+/
"""),
    (*_JSON_IN, " [ 1 ,\n 2 ] "),
    _JSON_OUT,
)

JSON_GBNF = Sample(
    "JSON in GBNF",
    Gbnf(r"""
# objects and arrays first: most texts begin with them
root   ::= value
value  ::= (object | array | string | number | "true" | "false" | "null") ws
object ::= "{" ws (
             string ":" ws value ("," ws string ":" ws value)*
           )? "}"
array  ::= "[" ws ( value ("," ws value)* )? "]"
string ::= "\"" (
             [^"\\\x00-\x1F] |
             "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
           )* "\"" ws
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws     ::= [ \t\n]{0,20}
"""),
    (*_JSON_IN, "[ 1 ,\n 2 ] "),
    _JSON_OUT,
)

SQL = Sample(
    "a subset of SQL",
    Lark(r"""
start: select ";"?
select: "select"i columns "from"i NAME [join] [where] [order] [limit]
columns: "*" | _list{column}
column: (NAME ".")? NAME ["as"i NAME] | FUNCTION "(" (NAME | "*") ")"
join: ("left"i)? "join"i NAME "on"i condition
where: "where"i disjunction
disjunction: conjunction | disjunction "or"i conjunction
conjunction: condition | conjunction "and"i condition
condition: value OPERATOR value | "(" disjunction ")" | NAME "is"i "not"i? "null"i
value: (NAME ".")? NAME | INT | TEXT
order: "order"i "by"i _list{NAME} ["asc"i | "desc"i]
limit: "limit"i INT
_list{item}: item ("," item)*
OPERATOR: "=" | "<>" | "<=" | ">=" | "<" | ">"
FUNCTION: "count"i | "max"i | "min"i
TEXT: "'" (/[^']/ | "''")* "'"
NAME.-1: /[a-z_][a-z0-9_]*/i
%import common.INT
%ignore /[ \t\n]+/
"""),
    (
        "SELECT * FROM users",
        "select a, t.b as c from t where a = 1 and (b <> 'it''s' or c is not null) order by a, b desc limit 10;",
        "Select count(*), max(x) From t left join u on t.id = u.id",
    ),
    ("", "select from", "select * from t where", "select a, from t", "select * from t limit x", "select * from t where a = 'x"),
)  # fmt: skip

DATES = Sample(
    "ISO dates",
    Gbnf(r"""
root ::= date ("T" time zone?)?
date ::= year "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | [12] [0-9] | "3" [01])
year ::= [0-9]{4}
time ::= hour ":" sixty (":" sixty ("." [0-9]{1,6})?)?
hour ::= [01] [0-9] | "2" [0-3]
sixty ::= [0-5] [0-9]
zone ::= "Z" | [+-] hour ":" sixty
"""),
    ("2024-02-29", "1999-12-31T23:59:59.999Z", "2024-01-01T00:00+05:30"),
    ("2024-13-01", "2024-00-10", "24-01-01", "2024-01-32", "2024-01-01T24:00", "2024-01-01T10:00:00.", "2024-1-1"),
)  # fmt: skip

CHESS = Sample(
    "chess moves",
    Gbnf(r"""
root ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")*
move ::= (pawn | nonpawn | castle) [+#]?
pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
castle ::= "O-O" "-O"?
"""),
    ("1. e4 e5\n", "1. e4 c5\n2. Nf3 d6\n10. O-O-O+ exd8=Q#\n", "1. Nbd2 R1xa3\n"),
    ("", "1. e4\n", "1. e9 e5\n", "1. e4 e5", "2. e4 e5\n", "1. exd e5\n"),
)

PYTHON = Sample(
    "expressions like Python's",
    Lark(r"""
start: test
test: or_test | or_test "if" or_test "else" test | lambda_
lambda_: "lambda" [NAME ("," NAME)*] ":" test
or_test: or_test "or" and_test | and_test
and_test: and_test "and" not_test | not_test
not_test: "not" not_test | comparison
comparison: comparison ("<"|">"|"=="|">="|"<="|"!="|"in"|"not" "in"|"is") sum | sum
sum: sum ("+"|"-") term | term
term: term ("*"|"/"|"//"|"%"|"@") factor | factor
factor: ("+"|"-"|"~") factor | power
power: primary ["**" factor]
primary: primary "." NAME | primary "(" [arguments] ")" | primary "[" slice "]" | atom
arguments: argument ("," argument)* [","]
argument: test | NAME "=" test
slice: test | [test] ":" [test]
atom: NAME | NUMBER | STRING | "(" [test ("," test)* [","]] ")" | "[" [test ("," test)* [","]] "]" | "{" [pair ("," pair)*] "}"
pair: test ":" test
STRING: /"([^"\\\n]|\\.)*"|'([^'\\\n]|\\.)*'/
NAME.-1: /[^\W\d]\w*/
%import common.NUMBER
%ignore " "
"""),
    (
        "a", "a.b(c, d=1)[2:].e", "lambda x, y: x if y else -x ** 2", "not a in b or c", "[1, (2,), {'k': \"v\"}]", "f(x)(y)[z]", "a - b - c", "ä + 1",
    ),
    ("", "a.", "f(", "lambda", "a if b", "[1,,2]", "1 +", "a..b", "{1}"),
)  # fmt: skip

S_EXPRESSIONS = Sample(
    "S-expressions",
    Gbnf(r"""
root ::= ws (expr ws)+
expr ::= atom | "(" ws (expr (sp expr)*)? ws ")" | "'" expr
atom ::= [^()'" \n;]+ | "\"" [^"]* "\""
sp   ::= [ \n]+
ws   ::= [ \n]*
"""),
    ("x", "(a b (c) ())", " ( define (f x)\n (* x x)) ", "'(1 2)", '(print "a b")'),
    ("", "(", "(a b", ")", '"a'),
)

CONFIG = Sample(
    "a configuration file",
    Lark(r"""
start: (section | _NL)* -> file
section: "[" NAME "]" _NL (entry _NL | _NL)*
entry: NAME "=" value
?value: ESCAPED_STRING | SIGNED_NUMBER -> number | BOOL | "[" [value ("," value)*] "]"
BOOL: "yes" | "no"
NAME: CNAME
_NL: /(#[^\n]*)?\n/
%import common (CNAME, ESCAPED_STRING, SIGNED_NUMBER, WS_INLINE)
%ignore WS_INLINE
"""),
    (
        "",
        "\n",
        "[a]\n",
        '# head\n[server]\nport = 80 # why\nnames=["a", "b\\"c"]\n\n[b]\non = yes\n',
    ),
    ("[a]", "a = 1\n", "[a]\nb\n", "[a]\nb = maybe\n", '[a]\nb = "x\n'),
)

SAMPLES = (
    ARITHMETIC, JSON_LARK, JSON_GBNF, SQL, DATES, CHESS, PYTHON, S_EXPRESSIONS, CONFIG,
)  # fmt: skip
