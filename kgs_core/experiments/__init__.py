"""What an algorithm, or Kafka without one, would have cost on a load. Pure: random numbers are handed in."""
