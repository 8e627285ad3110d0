"""The parts of a run's page: each takes what the run folder holds and says what it lacks."""
