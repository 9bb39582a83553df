"""Exit codes: the complete mapping, together with `DPVeilError.exit_code`.

0    all done
1    some or all photos were not released, no region was found, or a verification or an audit failed
2    wrong usage; nothing was read
3    a budget was refused, or a promise is weaker than was asked for
4    nothing readable among the inputs, or the output cannot be written
130  interrupted
"""

from __future__ import annotations

from typing import Final

DONE: Final = 0
INCOMPLETE: Final = 1
USAGE: Final = 2
BUDGET: Final = 3
IMPOSSIBLE: Final = 4
INTERRUPTED: Final = 130
