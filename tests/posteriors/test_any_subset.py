"""q(z | any subset of modalities): against closed forms, and through the program."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import mmgen
import mmgen.densities
from mmgen.artifacts import DatasetWriter
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.latent.space import LatentSpace
from mmgen.modalities.vector import VectorDescription
from mmgen.posteriors import Aggregate
from mmgen.posteriors.aggregate import AggregatedTask
from mmgen.testing.linear_gaussian import draw_observations, exact_posterior

NAMES = ("image", "attributes")


def batch_of(values: dict[str, torch.Tensor], known: tuple[str, ...]) -> Batch:
    size = len(next(iter(values.values())))
    present = {name: torch.full((size,), name in known) for name in values}
    return Batch(values, present)


@pytest.mark.slow
def test_every_subset_is_the_exact_posterior_of_a_linear_model() -> None:
    """Encodings are exact posteriors given both; the density given a subset is then p(z | subset), and p(z) of none."""
    torch.manual_seed(0)
    data = draw_observations(20_000)
    values = {name: value.float() for name, value in data.values.items()}
    encoded = exact_posterior(data, NAMES)
    described = [VectorDescription(name=name, size=values[name].shape[1]) for name in NAMES]
    modalities = [each.modality() for each in described]
    family = mmgen.densities.get("gaussian")()
    latent = LatentSpace.flat(2)
    aggregate = Aggregate(
        latent, modalities[0], family, described=described[0], further=[(modalities[1], described[1])]
    )
    assert (aggregate.reads, aggregate.given) == (NAMES, "image,attributes")
    aggregate.standardise(encoded.mean.float(), encoded.log_sd.float())
    task = AggregatedTask(aggregate, 0.2)
    optimizer = torch.optim.Adam(task.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1_200)
    rows = Batch({"mean": encoded.mean.float(), "log_sd": encoded.log_sd.float(), **values}, {})
    for _ in range(1_200):
        picked = torch.randint(len(data.values["image"]), (512,))
        known = {name: torch.ones(512, dtype=torch.bool) for name in rows.values}
        batch = Batch({name: value[picked] for name, value in rows.values.items()}, known)
        loss = -task(batch, 0).value.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    test = {name: value[:200] for name, value in values.items()}
    for known in (NAMES, ("image",), ("attributes",), ()):
        exact = exact_posterior(data, known)
        z = exact.mean[:200].float() + exact.sd[:200].float() * torch.randn(500, 200, 2)
        with torch.no_grad():
            found = aggregate.log_prob(z, batch_of(test, known)).double()
        reference = exact[:200].log_prob(z.double())
        assert float((reference - found).mean()) < 0.05, known  # the divergence, in nats
    # A modality that is not there at all is unknown, and values of what is unknown are not read.
    other = {**test, "attributes": torch.full_like(test["attributes"], 9.0)}
    torch.testing.assert_close(
        aggregate.log_prob(z, batch_of(other, ("image",))),
        aggregate.log_prob(z, batch_of(test, ("image",)).select(["image"])),
    )
    assert aggregate.sample(None, 7).shape == (7, 1, 2)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    path, rows = folder / "views.h5", np.arange(40)
    with DatasetWriter(path, size=40, settings={"recipe": "toy"}, seed=0) as writer:
        for name in ("left", "right"):
            writer.add_image(name, shape=(1, 8, 8), layout="bytes")
        writer.add_attributes("attributes", {"digit": ["0", "1"]})
        codes = (rows % 2)[:, None].astype(np.uint8)
        pictures = np.where(codes[:, :, None, None] == 1, 200, 20).repeat(8, 2).repeat(8, 3).astype(np.uint8)
        writer.write(0, {"left": pictures, "right": pictures, "attributes": codes})
        writer.add_splits("iid", train=rows[:30], val=rows[30:35], test=rows[35:])
    settings = {
        "objective": {"modalities": ["left", "right", "attributes"]},
        "model": {"latent_size": 2, "hidden": 8, "image_network": {"name": "mlp", "hidden": [8]}},
    }
    mmgen.train(path, objective="mvtcae", steps=2, settings=settings, output=folder / "m.safetensors", device="cpu")
    return folder / "m.safetensors"


def test_the_program_fits_and_draws_from_any_subset(trained: Path, tmp_path: Path) -> None:
    fitted = mmgen.fit_aggregate(
        trained, given="attributes,left,right", steps=2, output=tmp_path / "a.safetensors", device="cpu"
    )
    again = mmgen.load(tmp_path / "a.safetensors")
    source = again.posteriors["aggregate"]
    assert source.reads == ("attributes", "left", "right")
    assert fitted.sample("digit=1", n=3, seed=0).shape == (3, 1, 8, 8)
    pictures = Batch({"left": torch.rand(4, 1, 8, 8)}, {"left": torch.ones(4, dtype=torch.bool)})
    z = source.draw(pictures, 5, torch.Generator().manual_seed(0))
    assert z.shape == (5, 4, 2) and source.log_density(z, pictures).shape == (5, 4)


def test_pictures_are_read_in_bf16_as_well(trained: Path, tmp_path: Path) -> None:
    settings = {"training.precision": "bf16-mixed"}
    fitted = mmgen.fit_aggregate(
        trained, given="left,right", steps=2, settings=settings, output=tmp_path / "a.safetensors", device="cpu"
    )
    pictures = Batch({"left": torch.rand(4, 1, 8, 8)}, {"left": torch.ones(4, dtype=torch.bool)})
    density = fitted.posteriors["aggregate"].log_density(torch.zeros(4, 2), pictures)
    assert density.isfinite().all() and len(set(density.tolist())) == 4


def test_a_density_given_words_is_not_given_the_pictures_that_are_scored(trained: Path, tmp_path: Path) -> None:
    fitted = mmgen.fit_aggregate(
        trained, given="attributes,left,right", steps=2, output=tmp_path / "a.safetensors", device="cpu"
    )
    source = fitted.posteriors["aggregate"]
    batch = Batch(
        {"left": torch.rand(4, 1, 8, 8), "attributes": torch.zeros(4, 1, dtype=torch.int64)},
        {"left": torch.ones(4, dtype=torch.bool), "attributes": torch.ones(4, 1, dtype=torch.bool)},
    )
    assert [*source.select_words(batch, "attributes").values] == ["attributes"]
    z, points = torch.randn(4, 2), batch.select(["attributes"])
    assert not torch.allclose(source.log_density(z, batch), source.log_density(z, points))
    with pytest.raises(UsageError, match="conditioned on attributes, left, right, expected one of these, got text"):
        source.draw(Batch({"text": torch.zeros(4, 2)}, {"text": torch.ones(4, dtype=torch.bool)}), 2, None)


def test_a_fit_that_always_sees_all_answers_for_no_subset(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"keep_all got 1 for .*attributes,left"):
        mmgen.fit_aggregate(
            trained, given="attributes,left", settings={"aggregate.keep_all": 1.0}, steps=1,
            output=tmp_path / "a.safetensors", device="cpu",
        )  # fmt: skip


@pytest.mark.parametrize("given", ["attributes,smell", "left,left", "attributes,nothing"])
def test_what_cannot_be_given_together_is_refused(given: str, trained: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="or several of them with commas"):
        mmgen.fit_aggregate(trained, given=given, steps=1, output=tmp_path / "a.safetensors", device="cpu")


def test_other_targets_take_one_condition(trained: Path, tmp_path: Path) -> None:
    with pytest.raises((UsageError, SettingsError), match="expected attributes, text or nothing for"):
        mmgen.fit_aggregate(
            trained, given="attributes,left", target="true", steps=1, output=tmp_path / "a.safetensors", device="cpu"
        )


MEMBERS = [(name, "") for name in ("mvtcae", "mopoe", "mmvae", "mmvae-plus", "mmvm", "crmvae")]
MEMBERS += [("mvtcae", name) for name in ("consensus", "hellinger-moments", "wasserstein-barycentre")]


@pytest.mark.slow_cases("crmvae", "mmvm", "mopoe", "mvtcae consensus", "mvtcae wasserstein-barycentre")
@pytest.mark.parametrize(("objective", "inference"), MEMBERS, ids=[" ".join(one).strip() for one in MEMBERS])
def test_every_member_trains_and_draws(objective: str, inference: str, trained: Path, tmp_path: Path) -> None:
    """Its value rises within some steps; pictures are drawn from words by its own posterior, and by q_agg."""
    settings = {
        "objective": {"modalities": ["left", "right", "attributes"]},
        "model": {"latent_size": 2, "hidden": 8, "image_network": {"name": "mlp", "hidden": [8]}},
        "training": {"learning_rate": 0.003, "validate_every": 20},
    }
    settings["model"] |= {"inference": inference} if inference else {}
    output = tmp_path / "m.safetensors"
    mmgen.train(
        trained.with_name("views.h5"), objective=objective, steps=60, settings=settings, output=output, device="cpu"
    )
    entries = [json.loads(line) for line in output.with_suffix(".log.jsonl").read_text().splitlines()]
    values = [one["validation"] for one in entries if "validation" in one]
    bounds = [next(value for name, value in one.items() if name not in ("stderr", "terms")) for one in values]
    assert bounds[-1] > bounds[0]
    model = mmgen.load(output)
    assert model.sample("digit=1", n=3, seed=0, posterior="own").shape == (3, 1, 8, 8)
    fitted = mmgen.fit_aggregate(output, given="attributes", steps=2, output=tmp_path / "a.safetensors", device="cpu")
    assert fitted.sample("digit=1", n=3, seed=0).shape == (3, 1, 8, 8)
