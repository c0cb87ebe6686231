"""What one connection receives and sends: bytes in, frames and slices of files out."""
