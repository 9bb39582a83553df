"""Of many releases, a run tells the promise that costs most."""

from dpveil.accounting.compose import compose
from dpveil.accounting.meaning import strength
from dpveil.batch.report import Promise
from dpveil.cli.run_report import cost_of, dearest
from dpveil.core.guarantee import Guarantee, Relation, Scope


def paid(epsilon: float) -> Guarantee:
    return Guarantee(kind="pure", epsilon=epsilon, relation=Relation("any-image"), scope=Scope("a region"))


def promise(*guarantees: Guarantee, faces: bool = False) -> Promise:
    total = compose(guarantees)
    return Promise(guarantees, total, strength(total), faces)


def test_the_dearest_release_is_told_and_not_that_with_most_regions():
    texts, faces = promise(*([paid(0)] * 3)), promise(paid(5), paid(5), faces=True)
    assert cost_of([texts, faces], "clips") == (
        "in the worst of 2 clips, 2 faces at 5-DP each, together 10-DP (practically none), any-image"
    )
    assert dearest([promise(paid(1), *([paid(0)] * 9)), promise(paid(2))]) == promise(paid(2))
    assert dearest([promise(paid(1)), promise(paid(1), paid(0))]) == promise(paid(1), paid(0))
    copy = Promise((), None, None, faces=False)
    assert cost_of([copy, texts], "clips").startswith("3 regions at 0-DP each")
    assert (cost_of([copy], "clips"), dearest([])) == ("", None)
