"""Conditions on the rows of a typed topic, as option ``where`` of a read has them: their text and tree."""
