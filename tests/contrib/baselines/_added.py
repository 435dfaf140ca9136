"""What baselines add to tables of the core's tests."""

ROOMS_OF_COMMANDS = [("baseline", "contrib.baselines")]
WRITE = {"baseline": ["d.h5", "--preset", "wu/mnist"]}
ENDING = {"baseline": "jsonl"}
KEEPS_FINISHED = "baseline"
OF_A_FILE = "baseline"
REFUSED_LINES = [
    ("baseline my.h5 -m /etc/passwd", 2, "unknown baseline '/etc/passwd'"),
    ("baseline my.h5 -m ..", 2, "unknown baseline '..'"),
]
LOST = [(["baseline", "data.h5"], "flat.safetensors")]
STARTS_FROM_A_DATASET = {"baseline": ["baseline", "DATA", "-o", "OUT"]}
