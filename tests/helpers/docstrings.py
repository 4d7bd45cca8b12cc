"""Parameters that docstrings list, beside those of the signatures."""

import ast
import inspect
import re


def entries(documented, section="Parameters"):
    """Names and types of one section of a numpydoc docstring."""
    lines = inspect.getdoc(documented).splitlines()
    found = {}
    for line in lines[lines.index(section) + 2 :]:
        if match := re.match(r"\*{0,2}(\w+) : (.+)$", line):
            found[match[1]] = match[2]
        elif line and not line.startswith(" "):
            # The title of the next section.
            break
    return found


def parameters_of(function):
    """Parameters of a signature, without self."""
    parameters = inspect.signature(function).parameters.values()
    return [parameter for parameter in parameters if parameter.name != "self"]


def assert_parameters_are_documented(function):
    """Assert that the docstring lists all parameters in order, with their defaults."""
    documented = entries(function)
    assert list(documented) == [parameter.name for parameter in parameters_of(function)]
    for parameter in parameters_of(function):
        shown = re.search(r", default=(.+)$", documented[parameter.name])
        if parameter.default is parameter.empty:
            assert shown is None, parameter.name
        else:
            value = ast.literal_eval(shown[1].replace("np.nan", "'nan'"))
            assert str(value) == str(parameter.default), parameter.name


def bare_signature(function):
    """A signature without annotations, as docs/api.md shows it."""
    bare = [
        parameter.replace(annotation=parameter.empty)
        for parameter in parameters_of(function)
    ]
    return str(inspect.Signature(bare))
