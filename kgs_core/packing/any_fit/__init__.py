"""The any-fit packers, classic and modified, and next fit."""
