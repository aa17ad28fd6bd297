"""The publisher's plans played in memory, against laws."""
