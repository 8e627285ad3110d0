"""``sweep report``: the results of a folder as HTML, Markdown and figures, with what is missing of them."""
