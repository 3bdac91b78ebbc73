"""Face for programs and notebooks: plain values in, frozen values out. Its names are those of `kgs_core`."""
