"""Past one machine: extraction and analysis with Ray Data, the server with Ray Serve."""
