"""The doctor's checks. PURE: each is a function from gathered facts to findings."""
