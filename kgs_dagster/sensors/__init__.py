"""The sensors of the control loop and of experiments; those by the clock or after a failure are in `automation`."""
