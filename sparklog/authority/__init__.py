"""An authority of one's own: certificates, and the folder of files that a secured cluster starts from."""
