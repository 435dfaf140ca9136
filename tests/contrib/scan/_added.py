"""What SCAN adds to tables of the core's tests."""

USUAL_DATASETS = ["scan/mnist-a"]
REFUSED_FITS = [(["--target", "scan", "--text-weight", "2"], "use --target true")]
TARGETS_OF_DESCRIPTIONS = "scan"
