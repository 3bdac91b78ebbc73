"""Simulation of what an algorithm, or Kafka without one, would cost on a load. Pure: random numbers are handed in."""
