"""Commands for one machine: demo, broker, generator, example, prepare."""
