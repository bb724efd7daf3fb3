"""The history of the home's owner for other agents: a server of the Model Context Protocol."""
