"""Opening the topics of a consumer, and looking after them between rounds."""
