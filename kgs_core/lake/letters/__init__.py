"""Dead letters: their codes, which are chosen, and what redriven ones are judged by."""
