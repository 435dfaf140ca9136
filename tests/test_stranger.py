"""A package that is not part of mmgen adds members to it, with nothing but its metadata and its modules on the path."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mmgen import objectives, testing
from mmgen.artifacts import read_checkpoint, read_header
from mmgen.core.errors import ArtifactError, UsageError
from tests.conftest import Call
from tests.program import mmgen

HERE = Path(__file__).parent / "stranger"
TINY = ["--set", "model.latent_size=2", "--set", "model.hidden=16", "--steps", "4", "--batch", "16"]


def install(folder: Path, name: str, version: str, entries: dict[str, dict[str, str]]) -> None:
    """Write what tells Python that a distribution is installed in ``folder``."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in members.items()) for group, members in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))


def install_package(source: Path, package: str, folder: Path) -> Path:
    """Make ``folder`` one where the distribution at ``source`` is installed, as pip would."""
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    install(folder, project["name"], project["version"], project["entry-points"])
    (folder / package).symlink_to(source / package, target_is_directory=True)
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stranger's package as pip would install it."""
    return install_package(HERE, "mmgen_stranger", tmp_path_factory.mktemp("site"))


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(site))


@pytest.fixture(scope="module")
def made(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset, a model and an aggregate that the package's members made."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        for arguments in (
            ["make-data", "two-tone", "--number", "60", "--set", "size=8", "--workers", "1", "-o", folder / "d.h5"],
            ["train", folder / "d.h5", "--objective", "warm-elbo", "--set", "objective.temperature=0.5",
             "--set", "model.image_network.name=patches", *TINY, "-o", folder / "m.safetensors"],
            ["fit-aggregate", folder / "m.safetensors", "--steps", "4", "-o", folder / "a.safetensors"],
        ):  # fmt: skip
            mmgen(folder, *arguments)
    return folder


def test_list_shows_where_members_come_from_without_importing_them(site: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r})\nfrom mmgen.cli._main import main\n"
        "try:\n    main(['list', '--json'])\n"
        "except SystemExit:\n    print(json.dumps([m for m in ('torch', 'mmgen_stranger') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", f"import json\n{code}"], capture_output=True, text=True, check=True)
    *lines, loaded = [json.loads(line) for line in done.stdout.splitlines()]
    assert loaded == [] and done.stderr == ""
    theirs = {(m["kind"], m["name"]): m["about"] for m in lines if m["origin"] == "mmgen-stranger 0.3.0"}
    assert theirs.keys() == {
        ("recipe", "two-tone"), ("network", "patches"), ("model", "linear-vae"), ("objective", "warm-elbo"),
        ("metric", "contrast"),
    }  # fmt: skip
    assert theirs["objective", "warm-elbo"] == "A bound below one temperature, and no bound above it"
    assert {m["origin"] for m in lines} == {"mmgen", "mmgen-stranger 0.3.0"}
    names = [m["name"] for m in lines if m["kind"] == "objective"]
    assert names.index("telbo") < names.index("warm-elbo")  # our own first


@pytest.mark.usefixtures("installed")
def test_files_say_which_package_they_need(made: Path, call: Call) -> None:
    assert [str(m) for m in read_header(made / "d.h5").members] == ["recipe two-tone of mmgen-stranger 0.3.0"]
    assert {str(m) for m in read_header(made / "m.safetensors").members} == {
        "objective warm-elbo of mmgen-stranger 0.3.0", "network patches of mmgen-stranger 0.3.0",
    }  # fmt: skip
    assert read_header(made / "a.safetensors").members == ()  # what it needs of them, its model says
    code, out, _ = call("show", made / "m.safetensors", "--json")
    there = {(m["name"], m["distribution"], m["version"], m["there"]) for m in json.loads(out)["members"]}
    assert (code, there) == (
        0,
        {("warm-elbo", "mmgen-stranger", "0.3.0", True), ("patches", "mmgen-stranger", "0.3.0", True)},
    )
    text = (made / "m.safetensors").read_bytes()
    assert b"mmgen_stranger" not in text  # no import path


@pytest.mark.usefixtures("installed")
def test_what_it_made_is_measured_with_its_metric(made: Path, call: Call) -> None:
    code, out, err = call("eval", made / "m.safetensors", "--metric", "contrast", "--json")
    assert code == 0, err
    (score,) = [json.loads(line) for line in out.splitlines()]
    assert (score["metric"], score["unit"]) == ("contrast", "%") and 0 <= score["value"] <= 100


def test_without_the_package_a_sentence_says_what_is_missing(made: Path, call: Call, tmp_path: Path) -> None:
    for file in ("m.safetensors", "a.safetensors"):
        code, out, err = call("sample", made / file, "-n", "1", "-o", tmp_path / "s.png")
        assert (code, out) == (1, "")
        assert "m.safetensors was made with the " in err
        assert "mmgen-stranger 0.3.0, which is not installed: install it" in " ".join(err.split())
    code, out, err = call("show", made / "m.safetensors")
    assert code == 0
    assert "members.objective.warm-elbo\tmmgen-stranger 0.3.0" in out
    assert call("show", made / "d.h5")[0] == 0  # data need no recipe to be read
    code, _, err = call("train", made / "d.h5", "--objective", "warm-elbo")
    assert code == 2 and "unknown objective 'warm-elbo'" in err


@pytest.mark.usefixtures("installed")
def test_a_second_make_is_made_again_where_the_package_is_another(
    made: Path, call: Call, tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("make-data", "two-tone", "--number", "20", "--workers", "1", "-o", tmp_path / "d.h5")
    assert call(*words)[0] == 0
    assert "made by the same command" in call(*words)[2]
    newer = tmp_path / "newer"
    install(newer, "mmgen-stranger", "0.4.0", {"mmgen.recipes": {"two-tone": "mmgen_stranger.two_tone"}})
    monkeypatch.syspath_prepend(str(newer))
    assert "made by the same command" not in call(*words)[2]
    assert call(*words, "--overwrite")[0] == 0  # a module that says what is public, instead of a class
    assert read_header(tmp_path / "d.h5").members[0].version == "0.4.0"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["objective warm-elbo", "network patches", "model linear-vae", "recipe two-tone"])
def test_contracts_run_over_its_members(name: str) -> None:
    (member,) = [member for member in testing.members_of("mmgen-stranger") if str(member) == name]
    testing.check(member)


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_so_does_that_of_metrics_which_trains_a_model() -> None:
    (member,) = [member for member in testing.members_of("mmgen-stranger") if member.room == "metric"]
    testing.check(member)


def test_a_contract_is_not_kept_by_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An objective that says it is a bound and is above the likelihood is found out."""
    source = (HERE / "mmgen_stranger" / "warm_elbo.py").read_text()
    wrong = source.replace("value = likelihoods", "value = 100 + likelihoods").replace("WarmElbo", "AboveElbo")
    (tmp_path / "above.py").write_text(wrong)
    install(tmp_path, "wrong", "1", {"mmgen.objectives": {"above-elbo": "above:AboveElbo"}})
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(AssertionError, match="says that it is a bound, and is above"):
        testing.check(testing.Subject("objective", "above-elbo"))


# What can be wrong with a package.


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``package("name", group={"member": "module:Class"}, module="source")``: installs a package with one module."""

    def package(name: str, entries: dict[str, dict[str, str]], module: str = "", source: str = "") -> None:
        folder = tmp_path / name
        install(folder, name, "1.0", entries)
        if module:
            (folder / f"{module}.py").write_text(source)
        monkeypatch.syspath_prepend(str(folder))

    return package


def test_two_that_offer_a_name_are_both_named(package: Callable[..., None], call: Call) -> None:
    package("one", {"mmgen.objectives": {"elbo": "one:Elbo", "theirs": "one:Theirs"}})
    package("two", {"mmgen.objectives": {"theirs": "two:Theirs"}})
    from mmgen import __version__

    with pytest.raises(UsageError, match=f"objective 'elbo' cannot be used: .* by mmgen {__version__} and by one 1.0"):
        objectives.get("elbo")
    with pytest.raises(UsageError, match=r"'theirs' cannot be used: the name is offered by one 1.0 and by two 1.0"):
        objectives.get("theirs")
    assert objectives.get("telbo").__name__ == "Telbo"
    assert "telbo" in objectives.import_all() and "elbo" not in objectives.import_all()
    code, out, err = call("list", "objectives")
    rows = [line.split("\t") for line in out.splitlines()]
    assert code == 0
    assert [(row[1], row[3]) for row in rows if row[1] in ("elbo", "theirs")] == [
        ("elbo", "mmgen"), ("elbo", "one 1.0"), ("theirs", "one 1.0"), ("theirs", "two 1.0"),
    ]  # fmt: skip
    assert "objective 'elbo' of one 1.0 cannot be used" in err


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import no_such_module_at_all", "ModuleNotFoundError: No module named 'no_such_module_at_all'"),
        ("raise SystemExit('leave')", "SystemExit: leave"),
        ("class Other: ...", "AttributeError: module 'broken' has no attribute 'Broken'"),
        ("class Broken: ...", "expected a subclass of Objective in mmgen.objectives._base"),
        ("from mmgen.objectives._base import Objective as O\nclass Broken(O): 1", "does not define __call__, demands"),
    ],
)  # fmt: skip
def test_a_member_that_cannot_be_imported(
    source: str, said: str, package: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    package("bad-package", {"mmgen.objectives": {"broken": "broken:Broken"}}, "broken", source)
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    with pytest.raises(UsageError, match=r"objective 'broken' of bad-package 1.0") as refused:
        objectives.get("broken")
    assert said in str(refused.value)
    assert "broken" in objectives.names() and "broken" not in objectives.import_all()
    assert objectives.get("elbo").__name__ == "Elbo"
    sys.modules.pop("broken", None)


def test_names_and_groups_that_are_none(package: Callable[..., None], call: Call) -> None:
    package("odd", {"mmgen.objectives": {"My_Elbo": "odd:My"}, "mmgen.objectve": {"mine": "odd:Mine"}})
    code, out, err = call("list", "objective")
    said = " ".join(err.split())
    assert code == 0 and "My_Elbo" in out
    assert "objective 'My_Elbo' of odd 1.0 cannot be used: its name is 'My_Elbo', expected lower-case letters" in said
    assert "odd 1.0 offers members in the group 'mmgen.objectve', which mmgen does not read" in said
    with pytest.raises(UsageError, match="expected lower-case letters"):
        objectives.get("My_Elbo")


def test_a_file_of_another_packages_member_of_that_name(made: Path, package: Callable[..., None]) -> None:
    package("other", {"mmgen.objectives": {"warm-elbo": "other:Other"}, "mmgen.networks": {"patches": "other:P"}})
    with pytest.raises(ArtifactError, match=r"of mmgen-stranger 0.3.0, but here \S+ is other 1.0's: install it"):
        read_checkpoint(made / "m.safetensors", "model")


def test_a_file_of_a_version_that_had_the_member(made: Path, package: Callable[..., None]) -> None:
    package("mmgen-stranger", {"mmgen.recipes": {"two-tone": "mmgen_stranger.two_tone:TwoTone"}})
    with pytest.raises(ArtifactError, match=r"of mmgen-stranger 0.3.0, but 1.0 is installed, which does not bring it"):
        read_checkpoint(made / "m.safetensors", "model")


@pytest.mark.parametrize(
    "members",
    [
        "text", [3], [{"room": "objective", "name": "x"}], [{"room": "objective", "name": "x", "distribution": "a b"}],
        [{"room": "objective", "name": "../x", "distribution": "a"}], [{"room": 3, "name": "x", "distribution": "a"}],
        [{"room": "objective", "name": "x", "distribution": "a", "version": "1; rm"}],
        [{"room": "objective", "name": "x", "file": "../a.py"}],
        [{"room": "objective", "name": "x", "file": "a\x1b.py"}],
        [{"room": "objective", "name": "x", "distribution": "a", "file": "a.py"}],
        [{"room": "objective", "name": "x", "distribution": "a"}] * 65,
    ],
)  # fmt: skip
def test_a_header_that_says_nonsense_about_members(members: object) -> None:
    from mmgen.artifacts.header import header_from_json
    from tests.artifacts.test_sealed import header_text, sealed

    header = json.loads(header_text(Path(__file__).parent / "golden" / "model-v3.safetensors"))
    with pytest.raises(ArtifactError, match=r"^m.safetensors: the header's 'members") as caught:
        header_from_json(sealed(header | {"members": members}), Path("m.safetensors"))
    assert str(caught.value).isprintable()


def test_rooms_are_all_registries_there_are() -> None:
    """A new room registers itself; nothing lists them."""
    from mmgen.settings.registry import list_registries

    root = Path(__file__).resolve().parents[1]
    files = [file for floor in ("mmgen", "data_recipes") for file in (root / floor).rglob("__init__.py")]
    folders = [file.parent.relative_to(root) for file in files if "= attach_members(" in file.read_text()]
    made = {f"mmgen.{'.'.join(folder.parts).removeprefix('mmgen.')}" for folder in folders}
    assert made == {room.package for room in list_registries()}
    assert (
        len({room.group for room in list_registries()}) == len({room.noun for room in list_registries()}) == len(made)
    )
    assert [room.noun for room in list_registries()][:2] == ["recipe", "modality"]  # in the order of the pipeline


def test_two_tone_shows_what_it_says(installed: None) -> None:
    from mmgen.data_recipes import get

    rows = get("two-tone")(number=20, size=8).rows(np.arange(40), 0)  # type: ignore[attr-defined]  # the base does not know rows of this recipe
    light = rows.columns["image"][:, 0] > 100
    tone, side = rows.columns["attributes"].T
    for image, is_light, is_right in zip(light, tone, side, strict=True):
        assert image[:, -1].all() == (is_light != is_right) and image[:, 0].all() != image[:, -1].all()
