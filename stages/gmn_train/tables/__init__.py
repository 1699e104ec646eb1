"""`gmn-train table`: a list of models, seeds and splits run for real, and written as one table.

title = "Minesweeper"
note = "What the reader should know."
plot = "x"                      # optional: draw `x` of the rows against their test results; "epoch": curves

[defaults]                      # what the rows share
dataset = "minesweeper"
splits = "0-9"

[[row]]
model = "gmn"

[[row]]
label = "message passing alone, as long as GMN takes"
model = "mpnn"
set = { epochs = 1000 }
"""
