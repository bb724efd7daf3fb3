"""The web entrance: one small page, its API and the health endpoint."""
