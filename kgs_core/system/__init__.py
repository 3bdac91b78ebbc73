"""The operating system: processes, signals, files, ports, watchdog, failpoints."""
