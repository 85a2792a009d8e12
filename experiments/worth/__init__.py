"""What relevance adds to what is known without it, with several seeds."""
