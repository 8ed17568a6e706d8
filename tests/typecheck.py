"""The run-time type checker of the tests: beartype, with an int accepted where a float is annotated."""

from beartype import BeartypeConf, beartype

typechecker = beartype(conf=BeartypeConf(is_pep484_tower=True))
