"""What classifiers say, in the words of the command line."""

from __future__ import annotations

NO_UNLABELED = "got no unlabeled rows"  # in the warning of a fit to labeled rows alone

# Messages speak of parameters in Python; on the command line they are options.
_OPTIONS = {
    "pass shrinkage": "pass --shrinkage",
    "Pass shrinkage": "Pass --shrinkage",
    "pass another shrinkage": "pass another --shrinkage",
    "drop the column": "leave the column out by --drop",
    "drop the rows or the column": "leave the rows out, or the column by --drop",
    "pass missing='impute'": "pass --missing impute",
    "or drop columns": "or leave columns out by --drop",
    "Compare with SupervisedLDA": "Compare with --method supervised",
    " (sklearn.preprocessing.StandardScaler)": " or leave it out by --drop",
    "Impute missing values (sklearn.impute) or drop these rows": "Mend the table",
    ": add them, or pass None to estimate all": ": pass a --prior for each, or none at all",
    "the classes in y are": "the classes are",
    "priors must name every class in y": "--prior must name every class",
    "priors names classes": "--prior names classes",
    "priors gives 0 to": "--prior gives 0 to",
    "priors must": "The shares of --prior must",
}


def with_options(message: str) -> str:
    """A message that names options for parameters."""
    for parameter, option in _OPTIONS.items():
        message = message.replace(parameter, option)
    return message
