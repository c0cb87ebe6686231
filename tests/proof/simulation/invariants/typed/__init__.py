"""Rules of a typed topic: of its columns, and of readers that say which rows they want."""
