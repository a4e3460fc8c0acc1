"""An answer in the spool that comes too late to decide its item is proof of an execution, and is not thrown away."""

from __future__ import annotations

from pathlib import Path

from payonce.core.commands import Change
from payonce.core.money import Money
from payonce.core.states import ItemEvent, ItemState
from payonce.engine.spool import Spool, Spooled
from tests.scripts.bench import Bench


def test_a_late_answer_of_an_item_decided_otherwise_is_a_finding(tmp_path: Path) -> None:
    """The item is committed under another reference: the spooled execution opens a duplicate."""
    bench = Bench(tmp_path, {}, items=[("r1", "ch_1", "1.00"), ("r2", "ch_1", "1.00")], attempts=1)
    bench.table["script"] = {"r2": ["stop_401"]}
    assert bench.run().exit_code == 4
    bench.table["script"] = {}
    spool = Spool([tmp_path / "spool"], name="ledger")
    spool.reserve(concurrency=1)
    late = Change(1, ItemEvent.COMMIT, reference="re_other", billed=Money("1.00", "USD"))
    spool.write(Spooled("ledger", "b", "r1", 1, 0, 0, late))
    spool.close()
    assert bench.run().exit_code == 0
    found = bench.store.findings("b")
    assert [(f.kind, f.item, f.data["reference"]) for f in found] == [("duplicate", "r1", "re_other")]
    assert not list((tmp_path / "spool").glob("*.spool"))


def test_a_late_answer_counts_although_another_target_has_its_reference(tmp_path: Path) -> None:
    """Some providers count anew for each charge: the spooled execution is this item's, which is not sent again."""
    bench = Bench(tmp_path, {}, items=[("r1", "ch_1", "1.00"), ("r2", "ch_2", "1.00")], attempts=1)
    bench.table["script"] = {"r2": ["stop_401"]}
    assert bench.run().exit_code == 4
    bench.table["script"] = {}
    first = bench.store.item("b", "r1")
    assert first is not None and first.reference is not None
    spool = Spool([tmp_path / "spool"], name="ledger")
    spool.reserve(concurrency=1)
    late = Change(2, ItemEvent.COMMIT, reference=first.reference, billed=Money("1.00", "USD"))
    spool.write(Spooled("ledger", "b", "r2", 2, 0, 0, late))
    spool.close()
    bench.run()
    second = bench.store.item("b", "r2")
    assert second is not None and (second.state, second.reference) == (ItemState.COMMITTED, first.reference)
