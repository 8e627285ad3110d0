"""``python -m evaluator.rubric``: print the rubric of every track as Markdown, kept in ``docs/rubric.md``."""

from evaluator.rubric.page import rubric_page

print(rubric_page(), end="")
