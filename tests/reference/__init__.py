"""Independent referees: slow, plain, obviously right; nothing here imports ratebound."""
