"""Measurements of what the project promises; each module prints one table and may be run alone."""
