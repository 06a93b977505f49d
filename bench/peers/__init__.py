"""Other engines on the same workloads. See bench/peers/README.md."""
