"""How results are shown: a Gradio app over run records. Never imports the runner."""
