"""What the page to explore adds to tables of the core's tests."""

WRITE = {"explore": ["small.safetensors"]}
ENDING = {"explore": "html"}
OF_SEVERAL_FILES = "explore"
ON_A_GRID = "explore m.safetensors -n 2 -o e.html"
NOT_OURS = [(["explore", "flat.safetensors"], "thesis.html")]
ANSWERED = ("ui", "explore")
