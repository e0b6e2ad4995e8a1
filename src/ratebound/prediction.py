"""What a fitted classifier does with new rows: scores, decisions, and decisions at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ratebound.ramp import ramp
from ratebound.randomized import draw

if TYPE_CHECKING:
    from ratebound.kernel_model import Expansion

Floats = npt.NDArray[np.float64]


class Prediction:
    """Scores ``z + intercept_`` of a linear model or an expansion, and the two rules of decision.

    The estimator that inherits from it sets the attributes below and ``_validated``.
    """

    intercept_: float
    threshold_shift_: float
    classes_: npt.NDArray[Any]
    _sign: float
    _coef: Floats | None
    _expansion: Expansion | None

    @property
    def coef_(self) -> Floats:
        """Coefficients of a linear model, (n_features,)."""
        coef = self.__dict__.get("_coef")
        if coef is not None:
            return np.asarray(coef)
        if self.__dict__.get("_expansion") is None:
            raise AttributeError("there is no coef_ before fit")
        raise AttributeError(
            'there is a coef_ with kernel="linear" only; with other kernels the model is a '
            "combination of rows, with the factors dual_coef_ on support_vectors_"
        )

    def _validated(self, X: Any, *, reset: bool) -> Any:
        raise NotImplementedError

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        if self._expansion is not None:
            return self._expansion.scores(X)
        return np.asarray(X @ self.coef_, dtype=np.float64)

    def decision_function(self, X: Any) -> Floats:
        """Scores; positive where ``predict`` says ``classes_[1]``.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._scores(X) + self.intercept_

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Decide by the sign of the score, the same answer every time.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,), labels
        """
        decided = self.decision_function(X) > 0
        return np.asarray(self.classes_[decided.astype(np.intp)])

    def positive_probability(self, X: Any) -> Floats:
        """Probability with which the randomized classifier decides for the positive label.

        It is the ramp ``min(1, max(0, 1/2 + z))`` of the score before any repair of the threshold:
        a rule of decision, not an estimate of the label's probability.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        scores = self._scores(X) + (self.intercept_ - self.threshold_shift_)
        return ramp(self._sign * scores)

    def predict_randomized(
        self, X: Any, random_state: Any = None, keys: Any = None
    ) -> npt.NDArray[Any]:
        """Decide at random with `positive_probability`, the paper's randomized classifier.

        Parameters
        ----------
        X : array, sparse matrix or dataframe of shape (n, n_features)
        random_state : int, RandomState or None
        keys : array-like of shape (n,), optional
            Integers, strings or bytes that identify rows. Decisions then come from a keyed hash:
            the same key with the same probability gets the same answer every time, in any order.
            `random_state`, an int, selects among hashes.

        Returns
        -------
        ndarray of shape (n,), labels
        """
        positive = draw(self.positive_probability(X), random_state, keys)
        chosen = positive if self._sign > 0 else ~positive
        return np.asarray(self.classes_[chosen.astype(np.intp)])

    @property
    def predict_proba(self) -> Any:
        """Not offered: scores here are rules of decision, not probabilities of labels."""
        raise AttributeError(
            "RateBoundSVC has no predict_proba, as its scores are not probabilities of labels; "
            "positive_probability(X) is the probability with which the randomized classifier "
            "decides for the positive label"
        )
