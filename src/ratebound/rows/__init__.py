"""Where the rows of X live; solvers exchange with them sums of size features, cells and constraints."""
