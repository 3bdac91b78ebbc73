"""What is known of the group, from its records: members, health, what is still to be done. Pure."""
