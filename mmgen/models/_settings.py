"""Settings of models and of the data that they were made for."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from mmgen.latent.space import LatentSpace
from mmgen.modalities import Described, Description, observed_modalities
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.modalities.text import TextDescription
from mmgen.models._prior import PriorNetwork
from mmgen.networks import AttributeNetwork, SharedNetwork, TextNetwork
from mmgen.settings.config import Settings

Count = Annotated[int, Field(ge=1)]
D = TypeVar("D", bound=Description)


class ModelSettings(Settings):
    """Base of the settings of all kinds of models."""

    example: ClassVar[Mapping[str, Any]] = {}
    """Settings for the fast tests of :func:`mmgen.testing.check`, besides the name; by default the default settings."""

    name: str
    """The kind of model, a member of the room ``mmgen.models``."""
    initial_weights: Literal["default", "glorot"] = "default"
    """First weights of linear layers and convolutions: torch's own, or uniform as Glorot and Bengio (2010) for tanh,
    with biases of 0."""
    output_bias: Literal["default", "mean"] = "default"
    """First bias at the outputs of image decoders: as all others, or such that an untrained model says the mean
    training image (Burda et al., 2016)."""
    l2_attributes_decoder: Annotated[float, Field(ge=0)] = 0.0
    """lambda of a term lambda / 2 |w|^2 of the weight matrices of p(y|z), y the attributes, in training (VE Appendix
    A.4), besides ``training.weight_decay``."""

    def latent_space(self, data: "DataSettings") -> LatentSpace | None:
        """Return the space of z if it is known without building the model; by default None."""
        return None


def _check_latent_size(value: Any) -> Any:
    """Refuse what is no size of z and no shape of a grid."""
    shape = isinstance(value, list | tuple) and len(value) == 3 and all(type(n) is int and n > 0 for n in value)
    if not shape and not (type(value) is int and value >= 0):
        raise ValueError("expected a number of 0 or more, or [channels, height, width] of at least 1 each")
    return value


class MultimodalSettings(ModelSettings):
    """Settings of a multimodal VAE: sizes of z and of networks, and how posteriors are composed."""

    name: Literal["multimodal-vae"] = "multimodal-vae"
    """The kind of model."""
    latent_size: Annotated[int | tuple[int, int, int], BeforeValidator(_check_latent_size)] = 10
    """D, dimensions of z (VE: 10 for MNIST-A), or [C, h, w]: a grid of places, with image network spatial. 0 where each
    modality has a z of its own (private_sizes) and nothing is shared."""
    private_sizes: dict[str, Count] = Field(default_factory=dict)
    """Dimensions of z that belong to single modalities, besides latent_size, which all share: a modality's decoder sees
    shared ones and its own (Palumbo et al., 2023, MMVAE+). Left out, half of latent_size each where the objective needs
    some, and none elsewhere."""
    inference: str | None = None
    """How posteriors are composed; left out, as the objective needs."""
    image_network: dict[str, Any] = Field(default_factory=lambda: {"name": "strided"})
    """Family of image networks by name, and its own settings; all image modalities get one of the family. Left out,
    strided, or spatial where z is a grid."""
    joint_image_network: dict[str, Any] | None = None
    """Image network inside q(z | image, description), where that is a network of its own; left out, image_network."""
    attribute_network: AttributeNetwork = Field(default_factory=AttributeNetwork)
    """Widths of the networks over attributes."""
    text_network: TextNetwork | None = None
    """Widths of the networks over sentences, where there is text; left out, those of the paper."""
    networks: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Settings of the networks over other kinds of data, by kind (``networks.vector.hidden``); left out, theirs."""
    prior: PriorNetwork | None = None
    """Prior p(z | y) that is learned with the model, where decoders see the words y (objective cvae); left out, N(0, I)
    whatever the words."""
    shared: SharedNetwork | None = None
    """Networks next to z that modalities share (CK Section 5.1); left out, each modality has its own."""
    hidden: Count = 512
    """Width of the layers that join features."""
    head_layers: Annotated[int, Field(ge=0, le=100)] | None = None
    """Hidden layers between the features of one modality and its Gaussian: left out, two for images and one for text
    (VE Appendix A.4); 0 for WG's networks."""
    activation: Literal["elu", "relu", "silu"] = "elu"
    """Non-linearity of the layers that join features."""
    image_likelihood: str = "bernoulli"
    """p(image | z)."""

    @model_validator(mode="before")
    @classmethod
    def _add_default_name(cls, values: Any) -> Any:
        """Add the name of the default family of networks to settings without a name."""
        if not isinstance(values, Mapping):
            return values
        name = "spatial" if isinstance(values.get("latent_size"), list | tuple) else "strided"
        networks = {key: values.get(key) for key in ("image_network", "joint_image_network")}
        networks["image_network"] = {} if networks["image_network"] is None else networks["image_network"]
        named = {key: {"name": name, **each} for key, each in networks.items() if isinstance(each, Mapping)}
        return {**values, **named}

    def latent_space(self, data: "DataSettings | None" = None) -> LatentSpace:
        size = self.latent_size
        shared: dict[str, int | tuple[int, ...]] = {"z": size} if size else {}
        space = LatentSpace(shared)
        return space.with_private(self.private_sizes) if self.private_sizes else space


class DataSettings(Settings):
    """Settings of the data of a model, mostly read from the dataset file, so that a checkpoint describes its data."""

    split: str = "iid"
    """Split scheme that is trained on; validation and test follow it. Of a dataset without "iid", its own default."""
    paired: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of the training examples that stay whole; the others are taken apart into their modalities and shuffled
    (WG Section 5.1). Validation and test stay whole."""
    least_paired_share: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Least share of paired examples among those that training draws; pairs are repeated to reach it. Left out, every
    row is drawn equally often, as WG do."""
    labelled: Annotated[int, Field(ge=1)] | None = None
    """How many training examples keep their attributes, as often of one combination of values as of another; all others
    are shown without any description. Left out, all keep theirs. Validation and test keep theirs too."""
    labelled_seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Seed of the choice of labelled examples; left out, the seed of the training."""
    labelled_share: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Least share of labelled examples among those that training draws; they are repeated to reach it. Left out, every
    example is drawn equally often."""
    modalities: dict[str, Described] = Field(default_factory=dict)
    """All that an example is made of, by name: each a table with its kind and what the kind says of it. The main
    picture comes first, then other pictures, then everything else by kind."""
    main: str = ""
    """Name of the modality that descriptions are about, such as the main picture: left out, the picture called "image",
    else the first picture, else the first modality that is no words. Of sentences in several languages alone it is the
    language that is written; the first other one is that of descriptions."""

    @classmethod
    def from_descriptions(cls, *descriptions: Description, **others: Any) -> Self:
        """Build the settings of data that consist of these modalities."""
        return cls(modalities={each.name: each for each in descriptions}, **others)

    @model_validator(mode="before")
    @classmethod
    def _order_modalities(cls, values: Any) -> Any:
        """Add names, and sort: first the main modality, then others of its kind, then the rest by kind."""
        modalities = values.get("modalities", {}) if isinstance(values, Mapping) else None
        if not isinstance(modalities, Mapping):
            return values
        named = {name: {"name": name, **one} if isinstance(one, Mapping) else one for name, one in modalities.items()}
        kinds = {name: str(_read_field(table, "kind")) for name, table in named.items()}
        pictures = [name for name, kind in kinds.items() if kind == "image"]
        main = values.get("main") or ("image" if "image" in pictures else next(iter(pictures), ""))
        kind = kinds.get(main) if isinstance(main, str) else None  # anything else is refused later
        order = sorted(named, key=lambda name: (name != main, kinds[name] != kind, kinds[name]))
        return {**values, "modalities": {name: named[name] for name in order}, "main": main}

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for name, described in self.modalities.items():
            if described.name != name:
                raise ValueError(
                    f"modality '{name}' is described under the name '{described.name}'; give both the same name"
                )
        if self.main and self.modalities and self.main not in self.observed:
            expected = ", ".join(self.observed) or "nothing, since these data are words alone"
            raise ValueError(f"main got '{self.main}', expected {expected}; name one that descriptions can be about")
        return self

    def modalities_of_class(self, kind: type[D]) -> dict[str, D]:
        """Return the modalities whose specification has this class, by name."""
        return {name: each for name, each in self.modalities.items() if isinstance(each, kind)}

    @property
    def images(self) -> dict[str, ImageDescription]:
        """Picture modalities by name, the main one first."""
        return self.modalities_of_class(ImageDescription)

    @property
    def image(self) -> ImageDescription | None:
        """The main picture modality; None for data without pictures."""
        return self.images.get(self.main)

    @property
    def observation(self) -> Description | None:
        """The modality that descriptions are about, of any kind; None for data of words alone."""
        return self.observed.get(self.main) or next(iter(self.observed.values()), None)

    @property
    def observed(self) -> dict[str, Description]:
        """Modalities by name that descriptions are about, the main one first: the x of q(z | x)."""
        return observed_modalities(self.modalities)

    @property
    def attributes(self) -> AttributesDescription | None:
        """The first attributes of the data; None for data without attributes."""
        return next(iter(self.modalities_of_class(AttributesDescription).values()), None)

    @property
    def text(self) -> TextDescription | None:
        """The first text of the data that is not the main modality; None for data without text."""
        texts = self.modalities_of_class(TextDescription)
        return next((each for each in texts.values() if each is not self.observation), None)


def _read_field(described: Any, key: str) -> Any:
    """Return a field of a modality's specification, or of the table from which it will be built."""
    return described.get(key) if isinstance(described, Mapping) else getattr(described, key, None)
