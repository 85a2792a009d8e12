"""What a Ray cluster costs and gains: its machines are processes of this one."""
