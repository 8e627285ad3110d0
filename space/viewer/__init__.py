"""One case of several runs side by side: what was handed in, drawn over what was given."""
