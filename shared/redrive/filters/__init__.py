"""The filter language: one grammar for the console's `/` and the command line's `--where`.

`state:dead,retry queue:mail task:send_* !error:timeout attempt>3 age>10m arg.user.id:42
"peer closed" sort:-next`

The same key again widens (OR), another key narrows (AND), `!` turns a term round, `*`
stands for anything, quotes take everything literally. `>`, `>=`, `<` and `<=` always
narrow, so `attempt>1 attempt<5` is a range. Words without a key are looked for in the
task's name, the last error and the arguments, capital letters or not.
"""

from redrive.filters.completion import Completion, complete
from redrive.filters.matching import matches
from redrive.filters.parser import parse
from redrive.filters.rendering import render
from redrive.filters.rows import row_matches, vocabulary
from redrive.filters.terms import (
    Compare,
    Equal,
    Filter,
    FilterProblem,
    Match,
    Sort,
    Text,
    Vocabulary,
)

__all__ = [
    "Compare",
    "Completion",
    "Equal",
    "Filter",
    "FilterProblem",
    "Match",
    "Sort",
    "Text",
    "Vocabulary",
    "complete",
    "matches",
    "parse",
    "render",
    "row_matches",
    "vocabulary",
]
