"""The hall where everything meets: entrances, routing, turns, delivery, the daemon and the command line."""
