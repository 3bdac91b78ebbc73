"""A real PostgreSQL, the changes of its tables in Kafka by a real Debezium, and the tables that kgs makes of them."""
