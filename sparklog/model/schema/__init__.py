"""The columns of typed topics: types, ids, Spark's two notations, limits, and the document that is stored.

``parse_schema`` reads columns out of Spark's DDL, or out of the JSON of a Spark schema. ``new_schema`` checks
them, and gives each column and each field of a struct an id. A ``SchemaDocument`` has all versions of them.
"""
