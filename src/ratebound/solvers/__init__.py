"""Ways to solve one convex bound of the ramp problem to a certificate."""
