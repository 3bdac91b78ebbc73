"""Plans from loads: triggers, packing, budget, overload, spares; pure, usable alone."""
