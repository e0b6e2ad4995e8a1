"""Real data is found where it lies, and read as its README says."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from ratebound import datasets
from ratebound.data import Dataset, bind
from ratebound.datasets import NAMES, find, load

# Rows, features as encoded, positive rows.
SIZES = {
    "adult": (32561, 123, 7841),
    "bank": (45211, 50, 5289),
    "compas": (7214, 18, 3251),
    "elec2": (45312, 6, 19237),
    "farm_ads": (4143, 54877, 2210),
    "flights13": (252484, 9907, 59340),
    "german_credit": (1000, 61, 300),
    "mushrooms": (8124, 112, 3916),
    "w8a": (49749, 300, 1479),
}


@cache
def _loaded(name):
    try:
        return load(name, download=False)
    except FileNotFoundError:
        return None


def at_hand(name):
    data = _loaded(name)
    if data is None:
        pytest.skip(f"no files of {name}")
    return data


def test_all_names_are_checked_below():
    assert tuple(SIZES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_sizes(name):
    data = at_hand(name)
    assert (*data.X.shape, np.sum(data.y == 1)) == SIZES[name]
    assert len(data.y) == len(data.columns) == SIZES[name][0]
    assert len(data.feature_names) == SIZES[name][1]
    assert set(np.unique(data.y[~np.isnan(data.y)])) == {-1, 1}
    entries = data.X.data if sp.issparse(data.X) else data.X
    if name != "flights13":
        assert np.isfinite(entries).all()
    assert repr(data).startswith(f"RealData({name}: {SIZES[name][0]} rows, ")


def test_adult_has_its_groups_and_test_rows():
    adult = at_hand("adult")
    assert adult.test.X.shape == (16281, 123)
    for data, men, positive_men in ((adult, 21790, 6662), (adult.test, 10860, 3256)):
        is_man = data.columns["sex"] == "Male"
        assert (is_man.sum(), (data.y[is_man] == 1).sum()) == (men, positive_men)
    assert (adult.columns["race"] == "White").sum() == 27816
    assert (adult.columns["age"] == "17-25").sum() == 6411
    assert "test: 16281 rows" in repr(adult)


def test_adult_agrees_with_the_raw_file():
    adult = at_hand("adult")
    raw = datasets._csv("adult.train.csv.gz")
    assert (raw["sex"] == adult.columns["sex"]).all()
    assert (raw["race"] == adult.columns["race"]).all()
    assert ((raw["income"] == ">50K") == (adult.y == 1)).all()


def test_features_are_what_their_names_say():
    bank = at_hand("bank")
    X = dict(zip(bank.feature_names, bank.X.T, strict=True))
    assert (X["job=student"] == (bank.columns["job"] == "student")).all()
    assert (X["balance"] == bank.columns["balance"]).all()
    assert "duration" not in X


def test_flights_that_never_arrived_have_no_label():
    flights = at_hand("flights13")
    assert np.isnan(flights.y).sum() == 7747
    assert (np.diff(flights.X.indptr) == 15).all()


def test_columns_bind():
    compas = at_hand("compas")
    bound = bind(
        compas.X,
        compas.y,
        columns=compas.columns,
        datasets={"men": Dataset(compas.X[:5], compas.y[:5], columns=compas.columns[:5])},
    )
    assert bound.datasets["men"].column("sex").tolist() == ["Male"] * 4 + ["Male"]


def test_an_unknown_name_lists_the_names():
    with pytest.raises(ValueError, match=r'no dataset "adlt" \(there are: adult, .*mean "adult"'):
        load("adlt")


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No data anywhere but in a folder that is empty."""
    monkeypatch.setattr(datasets, "__file__", str(tmp_path / "a" / "datasets.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RATEBOUND_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_missing_file_says_where_it_was_looked_for(nowhere):
    with pytest.raises(FileNotFoundError, match=r"no file w8a\.libsvm\.gz in .*set RATEBOUND_DATA"):
        load("w8a")
    with pytest.raises(FileNotFoundError, match=r"a9a\.train"):
        load("adult", download=False)


@pytest.mark.parametrize("place", ["named", "shared/data", "cache/ratebound"])
def test_places(nowhere, monkeypatch, place):
    folder = nowhere / place
    folder.mkdir(parents=True)
    (folder / "w8a.libsvm.gz").touch()
    if place == "named":
        monkeypatch.setenv("RATEBOUND_DATA", str(folder))
    (nowhere / "work").mkdir()
    monkeypatch.chdir(nowhere / "work")
    assert find("w8a.libsvm.gz") == folder / "w8a.libsvm.gz"


def test_no_network_says_what_to_do(nowhere, monkeypatch):
    def refuse(**_):
        raise OSError("no route")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", refuse)
    with pytest.raises(FileNotFoundError, match=r"OpenML \(data_id=1430\): no route.*RATEBOUND"):
        load("adult")


def test_adult_from_openml(monkeypatch, tmp_path):
    adult = at_hand("adult")
    X = sp.vstack([adult.X, adult.test.X], format="csr")
    y = np.where(np.concatenate([adult.y, adult.test.y]) == 1, "1", "-1").astype(object)
    asked = {}

    def fetch(**kwargs):
        asked.update(kwargs)
        return SimpleNamespace(data=X, target=y)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    downloaded = datasets._download_adult()
    assert asked["data_id"] == 1430
    assert (downloaded.test.X != adult.test.X).nnz == 0
    assert (downloaded.y == adult.y).all()
    y[:] = "1"
    with pytest.raises(ValueError, match='OpenML has sent for "adult" is not the dataset meant'):
        datasets._download_adult()


def test_elec2_from_openml(monkeypatch):
    elec2 = at_hand("elec2")
    bunch = SimpleNamespace(
        data=np.column_stack([np.zeros(len(elec2.y)), elec2.X]),
        feature_names=["day", *elec2.feature_names],
        target=np.where(elec2.y == 1, "UP", "DOWN").astype(object),
    )
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: bunch)
    downloaded = datasets._download_elec2()
    assert (downloaded.X == elec2.X).all()
    assert (downloaded.y == elec2.y).all()


def test_importing_needs_no_dataframe_library():
    code = (
        "import sys; sys.modules['pandas'] = sys.modules['polars'] = None; "
        "import ratebound.data, ratebound.datasets"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
