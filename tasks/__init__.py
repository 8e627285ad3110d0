"""What is asked: task definitions, texts and the brief. No network, no other room."""
