"""Registration of the lake's tables in a catalogue."""
