"""Where the rows of X live; what leaves them is sums of size features, cells and constraints."""
