"""W2: what readers see in the columns of typed rows is what writers gave to these columns."""

from histories.tests.breaches.registry import breaks, legal


@breaks("RowsKeepTheirColumns")
def a_value_is_cut_for_a_reader_of_a_narrower_type(it):
    it.send("a", 0, cells={2: "70000"})
    it.poll(0, (0, "a"), columns=[2], cells=[(0, 2, "4464")])
    it.final((0, "a"))


@breaks("RowsKeepTheirColumns")
def a_name_that_was_dropped_comes_back_with_its_old_values(it):
    it.send("a", 0, cells={2: "7"})
    it.poll(0, (0, "a"), columns=[3], cells=[(0, 3, "7")])
    it.final((0, "a"))


@breaks("RowsKeepTheirColumns")
def a_reader_of_some_columns_is_given_null_for_one_that_was_renamed(it):
    it.send("a", 0, cells={2: "7", 3: "x"})
    it.poll(0, (0, "a"), columns=[2])
    it.final((0, "a"))


@breaks("RowsKeepTheirColumns")
def a_row_is_given_the_columns_of_its_neighbour(it):
    it.send("a", 0, cells={2: "7"})
    it.send("b", 1, cells={2: "8"})
    it.final((0, "a"), (1, "b"), columns=[2], cells=[(0, 2, "8"), (1, 2, "8")])


@breaks("RowsKeepTheirColumns")
def a_replica_lacks_a_column(it):
    it.send("a", 0, cells={2: "7", 3: "x"})
    it.final((0, "a"))
    it.dump("1", (0, 0, "a"), cells=[(0, 2, "7")])


@legal
def readers_have_columns_that_the_writer_lacked_and_lack_columns_that_it_had(it):
    it.send("a", 0, cells={2: "7", 3: "x"})
    it.send("b", 1, cells={})
    it.poll(0, (0, "a"), (1, "b"), columns=[3, 4], cells=[(0, 3, "x")])
    it.final((0, "a"), (1, "b"), columns=[2, 4], cells=[(0, 2, "7")])
    it.dump("1", (0, 0, "a"), (1, 0, "b"), cells=[(0, 2, "7"), (0, 3, "x")])


@legal
def who_tells_no_columns_is_not_asked_for_them(it):
    it.send("a", 0, cells={2: "7"})
    it.poll(0, (0, "a"))
    it.final((0, "a"))
