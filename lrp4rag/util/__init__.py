"""Small shared modules: files, text, sentences, hashes, JSON, YAML, terminal, progress, types, errors."""
