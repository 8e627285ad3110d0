"""The parts of a task's page, all of them read from the task itself."""
