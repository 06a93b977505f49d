"""The stores: `memory` explains the port, `sqlite` keeps everything in a file. One conformance suite holds them all."""
