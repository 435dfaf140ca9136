"""What belongs to all examples together stays whole, whichever of them are chosen."""

import torch

from mmgen.core.batch import Batch

EDGES = torch.tensor([[0, 1], [1, 2]])


def test_what_is_shared_stays_whole() -> None:
    batch = Batch({"graph": torch.arange(3)}, {"graph": torch.ones(3, dtype=torch.bool)}, {"graph.edges": EDGES})
    for other in (batch[1:], batch.repeat(2), batch.to("cpu"), batch.select(["graph"])):
        assert other.shared["graph.edges"].equal(EDGES)
    assert batch[1:].values["graph"].tolist() == [1, 2]
    assert batch.repeat(2).values["graph"].tolist() == [0, 0, 1, 1, 2, 2]


def test_shared_parts_go_with_their_modality() -> None:
    names, mask = torch.zeros(3, 1, dtype=torch.int64), torch.ones(3, dtype=torch.bool)
    batch = Batch({"graph": torch.arange(3), "attributes": names}, {"graph": mask, "attributes": mask[:, None]},
                  {"graph.edges": EDGES})  # fmt: skip
    assert batch.select(["attributes"]).shared == {}
    assert (batch.select(["attributes"]) | batch.select(["graph"])).shared["graph.edges"].equal(EDGES)
