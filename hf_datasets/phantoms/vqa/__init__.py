"""Question-answering phantoms: painters of what clinicians look at, and the layouts of eight upstreams."""
