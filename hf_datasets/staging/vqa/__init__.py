"""Question-answering upstreams: one small module a layout, on shared readers of tables, archives and folders."""
