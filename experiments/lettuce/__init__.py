"""LettuceDetect trained for as many epochs as its paper has, with the best checkpoint, on one fold."""
