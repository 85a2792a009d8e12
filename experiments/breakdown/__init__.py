"""What stored scores tell of a comparison, without a store: where systems fail, and like beside like."""
