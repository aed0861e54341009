"""Each rule of the year fails in a year in which it does not hold, and in no other; no engine runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from tests.engine.year import LEAK, LOST_WEEK, OUTAGE, Day, require_a_good_year

_DUE: Final = 45
_LOOK: Final = 73
_QUIET: Final = Day(
    number=0, what="", run="idstack renew", code=0, renewed=0, failed={"loader": 0}, restarted=0, said=""
)


def good_year() -> dict[int, Day]:
    """Every kind of day, with all that it may have."""
    days = [
        replace(_QUIET, number=_DUE, what="due: cloudProvider", renewed=1),
        replace(_QUIET, number=_LOOK, what="nothing is due"),
        *(replace(_QUIET, number=day, what="no run: the week is lost", run="", code=None) for day in LOST_WEEK),
        *(
            replace(_QUIET, number=day, what="Entra ID is away", code=1, said="does not answer", failed={"loader": 3})
            for day in OUTAGE
        ),
        replace(_QUIET, number=LEAK, what="the key of cloudProvider leaked", renewed=1, failed={"loader": 1}),
    ]
    return {day.number: day for day in days}


@pytest.mark.parametrize(
    ("day", "changes", "rule"),
    [
        (_DUE, {"code": 1, "said": "refused"}, "every other run did all that was due"),
        (OUTAGE[0], {"code": 0}, "every other run did all that was due"),
        (_DUE, {"failed": {"loader": 0, "other": 1}}, "a sign-in failed"),
        (LOST_WEEK[0], {"failed": {"loader": 1}}, "a sign-in failed"),
        (_DUE, {"restarted": 1}, "a pod was restarted"),
        (LEAK, {"restarted": 1}, "a pod was restarted"),
        (OUTAGE[-1], {"said": ""}, "a run says what it could not do"),
        (LOST_WEEK[-1], {"renewed": 1}, "nothing can be renewed"),
        (OUTAGE[-1], {"renewed": 1}, "nothing can be renewed"),
        (_DUE, {"renewed": 0}, "a renewal that was due happened"),
        (_LOOK, {"renewed": 1}, "so nothing was skipped"),
    ],
)
def test_a_day_that_went_wrong_is_found(day: int, changes: dict[str, Any], rule: str) -> None:
    days = good_year()
    require_a_good_year(list(days.values()))
    days[day] = replace(days[day], **changes)
    with pytest.raises(AssertionError, match=rule):
        require_a_good_year(list(days.values()))
