"""Tables of one's own as users bring them: files, options, and what must be said about them.

A case is (title, files, options, lines). `lines` are parts of what `tokenize` prints once it has read the data, or
`error:` and a part of the one line it ends with. The first file is the dataset unless `dataset` names another.
"""

import gzip
from typing import Any

import pyarrow as pa

Case = tuple[str, dict[str, Any], dict[str, Any], list[str]]

EDGES = "src,dst\na,b\nb,c\nc,d\nd,a\na,c\n"
DRAWN = "drew a random 60/20/20 split with seed 0"


def nodes(*columns: str) -> str:
    """nodes.csv of a to d: each column is `name: value value value value`, - for empty."""
    table = [["id", *"abcd"]]
    for column in columns:
        name, values = column.split(": ")
        table.append([name, *("" if value == "-" else value for value in values.split(" "))])
    return "\n".join(",".join(row) for row in zip(*table, strict=True)) + "\n"


def both(*columns: str) -> dict[str, Any]:
    return {"edges.csv": EDGES, "nodes.csv": nodes(*columns)}


FORMS: list[Case] = [
    ("edges alone", {"edges.csv": EDGES}, {}, ["4 nodes, 5 edges, called 'a'", "none: there are no labels"]),
    ("numbers are node numbers", {"e.csv": "src,dst\n0,1\n1,4\n"}, {}, ["5 nodes, 2 edges"]),
    ("numbers as names", {"e.csv": "src,dst\n5000000,7000000\n"}, {}, ["2 nodes", "read as names, not as numbers"]),
    ("ids of 10^12", {"e.csv": "src,dst\n1000000000000,2\n"}, {}, ["2 nodes", "up to 1,000,000,000,000"]),
    ("ids beyond int64", {"e.csv": f"src,dst\n{10**30},2\n"}, {}, ["2 nodes", "called '1000000000"]),
    ("negative ids are names", {"e.csv": "src,dst\n-1,2\n"}, {}, ["2 nodes", "called '-1'"]),
    ("leading zeros stay", {"e.csv": "src,dst\n007,7\n"}, {}, ["2 nodes", "called '007'"]),
    ("semicolons", {"e.csv": "src;dst;w\na;b;1.5\n"}, {}, ["2 nodes", "edge: 1 numbers (w)"]),
    ("decimal commas", {"e.csv": "src;dst;w\na;b;1,5\nb;c;2,5\n"}, {}, ["edge: 1 numbers (w)"]),
    ("tabs in .csv", {"e.csv": "src\tdst\na\tb\n"}, {}, ["2 nodes, 1 edges"]),
    ("tabs in .tsv", {"e.tsv": "src\tdst\nsome one\tb\n"}, {}, ["called 'b'"]),
    ("bars", {"e.csv": "src|dst\na|b\n"}, {}, ["2 nodes, 1 edges"]),
    ("spaces and comments", {"e.txt": "# a graph\n# of SNAP\n0 1\n1 2\n"}, {}, ["3 nodes", "without a header"]),
    ("no header, numbers", {"e.csv": "0,1\n1,2\n"}, {}, ["3 nodes, 2 edges", "e.csv begins with numbers"]),
    ("no header, a weight", {"e.csv": "0,1,0.5\n1,2,0.7\n"}, {}, ["edge: 1 numbers (2)"]),
    ("no header, text", {"e.csv": "a,b\nb,c\n"}, {"header": False}, ["3 nodes, 2 edges"]),
    ("no header, not told", {"e.csv": "a,b\nb,c\n"}, {}, ["error: --no-header if the first row is not a header"]),
    ("no header, both tables", {"edges.csv": "a,b\n", "nodes.csv": "a,x,1\nb,y,2\n"}, {"header": False, "label": "1"},
     ["2 classes (x, y)", "node: 1 numbers (2)"]),
    ("byte order mark", {"e.csv": "\ufeffsrc,dst\na,b\n"}, {}, ["2 nodes, 1 edges"]),
    ("carriage returns", {"e.csv": "src,dst\r\na,b\r\n"}, {}, ["2 nodes, 1 edges"]),
    ("quotes", {"e.csv": 'src,dst\n"a,1","b ""x"""\n'}, {}, ["called 'a,1'"]),
    ("spaces around ids", {"e.csv": "src, dst\na, b\nb ,a\n"}, {}, ["2 nodes, 1 edges"]),
    ("other scripts", {"e.csv": "src,dst\n東京,大阪\n"}, {}, ["2 nodes"]),
    ("case of names", {"e.csv": "SRC,Target\na,b\n"}, {}, ["2 nodes, 1 edges"]),
    ("several edge files", {"e-1.csv": "src,dst\na,b\n", "e-2.csv": "dst,src\nc,b\n"}, {"dataset": "e-*.csv"},
     ["3 nodes, 2 edges"]),
    ("several node files", {"edges.csv": EDGES, "n1.csv": "id,label\na,x\nb,y\n", "n2.csv": "id,label\nc,x\nd,y\n"},
     {"node_table": "n?.csv"}, ["2 classes (x, y)", "4 of 4 nodes labelled"]),
    ("files that differ", {"e-1.csv": "src,dst\na,b\n", "e-2.csv": "src,dst,w\nc,b,1\n"}, {"dataset": "e-*.csv"},
     ["error: e-2.csv has columns src, dst, w, e-1.csv has src, dst"]),
    ("no file of that pattern", {"x.csv": EDGES}, {"dataset": "e-*.csv"}, ["error: e-*.csv does not exist"]),
    ("columns told", {"e.csv": "who,whom\na,b\n"}, {"src": "who", "dst": "whom"}, ["2 nodes, 1 edges"]),
    ("a column told wrongly", {"e.csv": "who,whom\na,b\n"}, {"src": "whoo", "dst": "whom"},
     ["error: e.csv has no column 'whoo'; it has who, whom; did you mean 'who'?"]),
    ("the table of nodes told", {"g.csv": EDGES, "people.csv": nodes("label: x y x y")}, {"node_table": "people.csv"},
     ["2 classes (x, y)"]),
    ("loops and repeats", {"e.csv": "src,dst\na,a\na,b\na,b\n"}, {}, ["1 self-loops and 1 duplicates dropped"]),
    ("directed", {"e.csv": EDGES}, {"directed": True}, ["5 directed edges"]),
    ("packed", {"e.csv.gz": gzip.compress(EDGES.encode())}, {}, ["4 nodes, 5 edges, called 'a'"]),
    ("packed, nodes too", {"edges.csv.gz": gzip.compress(EDGES.encode()), "nodes.tsv.gz": gzip.compress(
        nodes("label: x y x y").replace(",", "\t").encode())}, {}, ["2 classes (x, y)", "4 nodes, 5 edges"]),
    ("capitals", {"EDGES.CSV": EDGES, "NODES.CSV": nodes("label: x y x y")}, {}, ["2 classes (x, y)"]),
    ("a folder", {"town/edges.csv": EDGES, "town/nodes.csv": nodes("label: x y x y")}, {"dataset": "town"},
     ["2 classes (x, y)"]),
    ("a folder of one file", {"town/g.tsv": EDGES.replace(",", "\t")}, {"dataset": "town/"}, ["4 nodes, 5 edges"]),
    ("nodes without edges", {"edges.csv": "src,dst\n", "nodes.csv": nodes("label: x y x y")}, {}, ["4 nodes, 0 edges"]),
]  # fmt: skip

BROKEN: list[Case] = [
    ("nothing", {"e.csv": ""}, {}, ["error: e.csv cannot be read as a table"]),
    ("a header alone", {"e.csv": "src,dst\n"}, {}, ["error: e.csv has no rows"]),
    ("a short row", {"e.csv": "src,dst\na,b\nc\n"}, {}, ["error: Expected 2 columns, got 1"]),
    ("two columns of one name", {"e.csv": "src,dst,w,w\na,b,1,2\n"}, {}, ["error: e.csv has two columns named 'w'"]),
    ("ids not UTF-8", {"e.csv": b"src,dst\nm\xfcller,b\n"}, {}, ["error: e.csv is not UTF-8 text; save it as UTF-8"]),
    ("header not UTF-8", {"e.csv": b"src,dst,\xfc\na,b,1\n"}, {}, ["error: e.csv is not UTF-8 text"]),
    ("feature not UTF-8", {"e.csv": b"src,dst,c\na,b,\xfc\n"}, {}, ["error: column 'c' of e.csv is not UTF-8 text"]),
    ("UTF-16", {"e.csv": "src,dst\na,b\n".encode("utf-16")}, {}, ["error: e.csv is UTF-16 text; save it as UTF-8"]),
    ("Parquet that is none", {"e.parquet": b"PAR1 nothing"}, {}, ["error: e.parquet cannot be read as a table"]),
    ("no target column", {"e.csv": "src,weight\na,1\n"}, {}, ["error: it needs one named dst or target"]),
    ("an empty end", {"e.csv": "src,dst\na,\n"}, {}, ["error: e.csv has rows with an empty id"]),
    ("a node not listed", {"edges.csv": EDGES + "a,z\n", "nodes.csv": nodes("label: x y x y")}, {},
     ["error: edges.csv names node 'z', which nodes.csv does not list"]),
    ("a node twice", {"edges.csv": EDGES, "nodes.csv": "id\na\nb\nc\nd\na\n"}, {},
     ["error: nodes.csv lists node 'a' more than once"]),
    ("a missing number", both("label: x y x y", "age: 1 - 3 4"), {},
     ["error: column 'age' of nodes.csv has 1 empty fields; fill them, or leave it out with --drop age"]),
    ("an infinite number", both("label: x y x y", "age: 1 inf 3 4"), {}, ["error: 1 values that are NaN or infinite"]),
    ("too many texts",
     {"edges.csv": "src,dst\n0,1\n", "nodes.csv": "id,name\n" + "".join(f"{i},n{i}\n" for i in range(300))},
     {}, ["error: column 'name' of nodes.csv holds 300 different texts in 300 rows, as 'n0'"]),
    ("too many kinds", {"edges.csv": "src,dst\n0,1\n", "nodes.csv": "id,town\n" + "".join(
        f"{i},t{i % 300}\n" for i in range(900))}, {},
     ["error: holds 300 different texts in 900 rows, as 't0': too many for categories (at most 256); join the rare"]),
    ("the table of nodes missing", {"e.csv": EDGES}, {"node_table": "no.csv"}, ["error: no.csv does not exist"]),
    ("a label without nodes", {"e.csv": EDGES}, {"label": "x"},
     ["error: --label names a column of the table of nodes"]),
    ("an unknown split", both("label: x y x y", "split: train val test tset"), {}, ["error: did you mean 'test'"]),
    ("an option of tables for .npz", {"g.npz": {"edges": [[0, 1]]}}, {"label": "x"},
     ["error: --label goes with a table of edges"]),
    ("a folder", {"sub.csv/x": ""}, {"dataset": "sub.csv"}, ["error: sub.csv is a folder"]),
    ("a folder of several files", {"town/a.csv": EDGES, "town/b.csv": EDGES}, {"dataset": "town"},
     ["error: town is a folder of a.csv, b.csv; name one of them, or several of one table as 'town/*.csv'"]),
    ("a mistyped file", {"edges.csv": EDGES}, {"dataset": "edgs.csv"},
     ["error: edgs.csv does not exist; did you mean 'edges.csv'?"]),
    ("a mistyped table of nodes", {"e.csv": EDGES, "people.csv": ""}, {"node_table": "peple.csv"},
     ["error: node table peple.csv does not exist; did you mean 'people.csv'?"]),
    ("packed, but not", {"e.csv.gz": EDGES}, {}, ["error: e.csv.gz cannot be unpacked"]),
    ("packed and cut off", {"e.csv.gz": gzip.compress(EDGES.encode() * 9)[:-20]}, {},
     ["error: e.csv.gz cannot be unpacked"]),
    ("names of people", {"edges.csv": "src,dst\n0,1\n", "nodes.csv": "id,name\n" + "".join(
        f"{i},n{i}\n" for i in range(40))}, {}, ["error: holds 40 different texts in 40 rows, as 'n0': names"]),
    ("a stray text among numbers", {"edges.csv": "src,dst\n0,1\n", "nodes.csv": "id,age\n" + "".join(
        f"{i},{'?' if i == 7 else i + 0.5}\n" for i in range(40))}, {},
     ["error: column 'age' of nodes.csv holds numbers, but for 1 fields such as '?'; leave those empty or"]),
    ("dates of either order", both("label: x y x y", "d: 01/02/2024 03/04/2024 05/06/2024 07/08/2024"), {},
     ["error: column 'd' of nodes.csv holds dates such as '01/02/2024', day or month first; write them as 2024-12-31"]),
    ("an unknown suffix", {"g.gml": ""}, {}, ["error: g.gml is a '.gml' file; a dataset of your own is one of .npz"]),
    ("a name that is too long", {"e.csv": ""}, {"dataset": "x" * 300 + ".csv"}, ["error: has 304 characters"]),
]  # fmt: skip

FEATURES: list[Case] = [
    ("numbers", both("label: x y x y", "age: 1 2 3 4", "size: .5 1e3 -2 0"), {}, ["node: 2 numbers (age, size)"]),
    ("truth values", both("label: x y x y", "new: true false true true"), {}, ["node: 1 numbers (new)"]),
    ("text", both("label: x y x y", "team: red blue red -"), {},
     ["node: 2 numbers (team=blue, team=red)", "column 'team' of nodes.csv is text: read as 2 categories"]),
    ("dates", both("label: x y x y", "born: 2001-01-01 2002-02-02 2003-03-03 2004-04-04"), {},
     ["node: 1 numbers (born)", "column 'born' of nodes.csv is a date: read as days since 1970"]),
    ("dates by dots", both("label: x y x y", "d: 31.12.2001 1.2.2002 03.03.2003 -"), {"drop": ("label",)},
     ["error: column 'd' of nodes.csv has 1 empty fields"]),
    ("dates, day first", both("label: x y x y", "d: 31.12.2001 1.2.2002 03.03.2003 04.04.2004"), {},
     ["node: 1 numbers (d)", "holds dates such as '31.12.2001': read as day.month.year"]),
    ("dates, month first", both("label: x y x y", "d: 12/31/2001 1/2/2002 03/03/2003 04/04/2004"), {},
     ["node: 1 numbers (d)", "read as month/day/year"]),
    ("dates, year first", both("label: x y x y", "d: 2001/12/31 2002/1/2 2003/03/03 2004/04/04"), {},
     ["node: 1 numbers (d)", "read as year/month/day"]),
    ("thousands", {"edges.csv": EDGES, "nodes.csv": 'id,pay\na,"1,000.5"\nb,12\nc,"2,000,000"\nd,7\n'}, {},
     ["node: 1 numbers (pay)", "column 'pay' of nodes.csv is text such as '1,000.5': read as numbers"]),
    ("thousands by dots", {"edges.csv": EDGES, "nodes.csv": "id;pay;q\na;1.000,5;1.5\nb;12,5;2\nc;7;3\nd;8;4\n"}, {},
     ["node: 2 numbers (pay, q)", "is text such as '1.000,5': read as numbers"]),
    ("money and shares", {"edges.csv": EDGES, "nodes.csv": "id,pay,share\na,$10,5%\nb,$12,6 %\nc,$7,7%\nd,$8,8%\n"}, {},
     ["node: 2 numbers (pay, share)", "such as '$10': read as numbers", "such as '5%': read as numbers"]),
    ("versions are text", both("label: x y x y", "v: 1.2.3 1.2.4 1.2.3 1.2.4"), {}, ["(v=1.2.3, v=1.2.4)"]),
    ("numbered kinds are text", both("label: x y x y", "v: 1 2 1 other"), {}, ["(v=1, v=2, v=other)"]),
    ("drop the split", both("label: x y x y", "split: train train train train"), {"drop": ("split",)}, [DRAWN]),
    ("drop a mask", both("label: x y x y", "train_mask: yes no yes no"), {"drop": ("train_mask",)}, [DRAWN]),
    ("drop the labels", both("label: x y x y", "age: 1 2 3 4"), {"drop": ("label",)},
     ["none: there are no labels", "no column of nodes.csv is called label, y, target, class: no labels"]),
    ("text of edges", {"e.csv": "src,dst,kind\na,b,mail\nb,c,call\n"}, {}, ["edge: 2 numbers (kind=call, kind=mail)"]),
    ("some columns only", both("label: x y x y", "age: 1 2 3 4", "name: p q r s"), {"features": ("age",)},
     ["node: 1 numbers (age)"]),
    ("without some columns", both("label: x y x y", "age: 1 2 3 4", "name: p q r s"), {"drop": ("name",)},
     ["node: 1 numbers (age)"]),
    ("without all columns", both("label: x y x y", "name: p q r s"), {"drop": ("name",)}, ["4 of 4 nodes labelled"]),
    ("drop a column that is not there", both("label: x y x y", "age: 1 2 3 4"), {"drop": ("agee",)},
     ["error: --drop names 'agee'; columns that can be features: age; did you mean 'age'?"]),
    ("whole numbers around 10^9", both("label: x y x y", "n: 1000000000 1000000001 5 6"), {}, ["node: 1 numbers (n)"]),
]  # fmt: skip

LABELS: list[Case] = [
    ("text", both("label: red blue red -"), {}, ["node multiclass, 2 classes (blue, red), accuracy; 3 of 4 nodes"]),
    ("text with NA", both("label: red blue red NA"), {}, ["2 classes (blue, red)", "3 of 4 nodes labelled"]),
    ("numbers from 0", both("label: 0 1 2 1"), {}, ["node multiclass, 3 classes, accuracy", DRAWN]),
    ("-1 and 1", both("label: -1 1 -1 1"), {}, ["2 classes (-1, 1)", "labels -1, 1 are read as classes 0 to 1"]),
    ("-1 beside classes", both("label: 0 1 -1 1"), {}, ["2 classes", "label -1 is read as unknown: 1 of 4 items"]),
    ("gaps", both("label: 10 200 3000 10"), {}, ["3 classes (10, 200, 3000)", "read as classes 0 to 2"]),
    ("from 1", both("label: 1 2 3 1"), {}, ["3 classes (1, 2, 3)"]),
    ("around 10^9", both("label: 1000000000 1000000007 1000000000 -"), {}, ["2 classes (1000000000, 1000000007)"]),
    ("whole with a point", both("label: 0.0 1.0 2.0 -"), {}, ["3 classes", "labels are whole numbers (0, 1, 2)"]),
    ("whole with a missing one", both("label: 0 1 1 -"), {}, ["2 classes", "3 of 4 nodes labelled"]),
    ("truth values", both("label: true false true -"), {}, ["2 classes (False, True)", "3 of 4 nodes labelled"]),
    ("fractions", both("label: 0.5 1.5 2 -"), {}, ["node regression, 1 targets, mae; 3 of 4 nodes labelled"]),
    ("whole, but a regression", both("label: 1 2 3 1"), {"task": "regression"}, ["node regression, 1 targets"]),
    ("whole with a gap, but a regression", both("label: 1 2 3 -"), {"task": "regression"}, ["3 of 4 nodes labelled"]),
    ("truth values, but a regression", both("label: 1 0 1 -"), {"task": "regression"}, ["regression, 1 targets"]),
    ("another column", both("team: x y x y"), {"label": "team"}, ["2 classes (x, y)"]),
    ("another column, mistyped", both("team: x y x y"), {"label": "teem"}, ["error: did you mean 'team'?"]),
    ("two columns of 0 and 1", both("p: 0 1 1 0", "q: 1 1 0 0"), {"label": "p,q"}, ["multilabel, 2 labels (p, q)"]),
    ("two columns of numbers", both("p: 0 1 5 0", "q: 1.5 1 0 0"), {"label": "p,q"}, ["regression, 2 targets (p, q)"]),
    ("all empty", both("label: - - - -", "age: 1 2 3 4"), {}, ["none: there are no labels", "all labels are empty"]),
    ("one class", both("label: x x x -"), {}, ["error: all known labels are 'x': there is nothing to tell apart"]),
    ("one number", both("label: 4 4 4 -"), {}, ["error: all known labels are 4: there is nothing to tell apart"]),
    ("text for a regression", both("label: x y x y"), {"task": "regression"}, ["error: labels are text, as 'x'"]),
    ("fractions for classes", both("label: .5 1 2 3"), {"task": "multiclass"}, ["error: must be whole numbers"]),
    ("more classes than seen", both("label: 0 1 2 1"), {"classes": 5}, ["5 classes"]),
    ("fewer classes than seen", both("label: 0 1 2 3"), {"classes": 3}, ["error: labels hold 0..3; with 3 classes"]),
    ("binary", both("label: no yes no yes"), {"task": "binary"}, ["node binary, 2 classes (no, yes), roc_auc"]),
    ("dates", both("label: 2001-01-01 2002-01-01 2003-01-01 -"), {},
     ["error: label column 'label' of nodes.csv holds dates"]),
    ("as many numbers as items", {"edges.csv": "src,dst\n0,1\n", "nodes.csv": "id,label\n" + "".join(
        f"{i},{i * i}\n" for i in range(60))}, {}, ["node regression", "60 different numbers for 60 items"]),
    ("forty classes, some empty", {"edges.csv": "src,dst\n0,1\n", "nodes.csv": "id,label\n" + "".join(
        f"{i},{'' if i % 7 == 0 else i % 40}\n" for i in range(400))}, {}, ["node multiclass, 40 classes"]),
    ("forty classes with a point, some empty", {"edges.csv": "src,dst\n0,1\n", "nodes.csv": "id,label\n" + "".join(
        f"{i},{'' if i % 7 == 0 else f'{i % 40}.0'}\n" for i in range(400))}, {}, ["node multiclass, 40 classes"]),
    ("forty counts with a point", {"edges.csv": "src,dst\n0,1\n", "nodes.csv": "id,label\n" + "".join(
        f"{i},{i % 40}.0\n" for i in range(400))}, {}, ["node regression", "--task multiclass changes that"]),
    ("forty whole numbers", {"edges.csv": "src,dst\n0,1\n", "nodes.csv": "id,label\n" + "".join(
        f"{i},{20 + i % 40}\n" for i in range(400))}, {},
     ["40 classes", "labels are 40 whole numbers: read as classes; --task regression changes that"]),
    ("thousands", {"edges.csv": EDGES, "nodes.csv": 'id,label\na,"1,000.5"\nb,"2,000"\nc,"3,000"\nd,\n'}, {},
     ["node regression", "3 of 4 nodes labelled"]),
    ("one of 200 is rare", {"edges.csv": "src,dst\n0,1\n", "nodes.csv": "id,label\n" + "".join(
        f"{i},{'fraud' if i % 80 == 9 else 'fine'}\n" for i in range(240))}, {},
     ["98.8% of labels are of class fine, so accuracy says little; --task binary --metric average_precision",
      "each class by itself, as some are rare", "144 train, 48 validation, 48 test"]),
    ("each row a class", both("p: 0 1 1 0", "q: 1 0 0 1"), {"label": "p,q"},
     ["node multiclass, 2 classes (p, q)", "each row of labels has one 1: read as classes; --task multilabel changes"]),
    ("as many texts as items", {"edges.csv": "src,dst\n0,1\n", "nodes.csv": "id,label\n" + "".join(
        f"{i},t{i}\n" for i in range(60))}, {}, ["error: labels are 60 different texts for 60 items"]),
]  # fmt: skip

SPLITS: list[Case] = [
    ("a column of parts", both("label: x y x y", "split: train val test -"), {}, ["1 train, 1 validation, 1 test"]),
    ("parts by other names", both("label: x y x y", "Split: TRAIN dev Test train"), {}, ["2 train, 1 validation"]),
    ("masks", both("label: x y x y", "train_mask: true true false false", "val_mask: false false true false",
                   "test_mask: false false false true"), {}, ["2 train, 1 validation, 1 test"]),
    ("training only", both("label: x y x y", "split: train train - -"), {},
     ["2 train, 1 validation, 1 test", "only training items given: drew validation and test from the other 2"]),
    ("parts by longer names", both("label: x y x y", "split: training validation testing training"), {},
     ["2 train, 1 validation, 1 test"]),
    ("all for training", both("label: x y x y", "split: train train train train"), {},
     ["error: all items are for training and none are left to test on"]),
    ("testing only", both("label: x y x y", "split: test test test test"), {},
     ["4 test", "no training item has a label: the store serves to predict and evaluate"]),
    ("by year", both("label: x y x y", "year: 2004 2001 2003 2002"), {"time": "year"},
     ["split by time", "2 train, 1 validation, 1 test"]),
    ("by date", both("label: x y x y", "d: 2004-01-01 2001-01-01 2003-01-01 2002-01-01"), {"time": "d"}, ["2 train"]),
    ("by time and a column", both("label: x y x y", "year: 4 1 3 2", "split: train val test test"), {"time": "year"},
     ["error: both --time and a split are given"]),
    ("too few", both("label: x y - -"), {}, ["2 labelled items are too few for training, validation and testing each"]),
]  # fmt: skip

MANY = {"edges.csv": "src,dst\na,c\nb,d\n", "nodes.csv": nodes("graph: g1 g2 g1 g2", "age: 1 2 3 4")}
GRAPHS: list[Case] = [
    ("a column of graphs", MANY, {}, ["2 graphs, 4 nodes, 2 edges, called 'a'", "node: 1 numbers (age)"]),
    ("a table of graphs", MANY | {"graphs.csv": "id,label\ng2,x\ng1,y\ng3,x\n"}, {},
     ["3 graphs, 4 nodes", "graph multiclass, 2 classes (x, y)", "called 'a'"]),
    ("targets of graphs", MANY | {"graphs.csv": "id,label\ng2,0.5\ng1,1.5\n"}, {}, ["graph regression"]),
    ("a graph not listed", MANY | {"graphs.csv": "id,label\ng2,x\n"}, {}, ["error: nodes.csv names graph 'g1'"]),
    ("graphs, and nodes of none", both("label: x y x y") | {"graphs.csv": "id,label\ng1,x\n"}, {},
     ["error: graphs.csv lists graphs, and nodes.csv has no column 'graph'"]),
    ("an edge between graphs", MANY | {"edges.csv": "src,dst\na,b\n"}, {}, ["error: of different graphs"]),
]  # fmt: skip

PARQUET: list[Case] = [
    ("ids of numbers", {"e.parquet": {"src": [0, 1], "dst": [1, 2]}}, {}, ["3 nodes, 2 edges"]),
    ("ids with a point", {"e.parquet": {"src": [0.0, 1.0], "dst": [1.0, 2.0]}}, {}, ["3 nodes, 2 edges"]),
    ("ids of half numbers", {"e.parquet": {"src": [0.5], "dst": [1.0]}}, {}, ["called '0.5'"]),
    ("an empty id", {"e.parquet": {"src": ["a", None], "dst": ["b", "c"]}}, {}, ["error: rows with an empty id"]),
    ("categories", {"e.parquet": {"src": [0, 1], "dst": [1, 2], "kind": pa.array(["x", "y"]).dictionary_encode()}}, {},
     ["edge: 2 numbers (kind=x, kind=y)"]),
    ("times", {"e.parquet": {"src": [0], "dst": [1], "at": pa.array([10**15], pa.timestamp("us"))}}, {},
     ["edge: 1 numbers (at)", "is a date"]),
    ("decimals", {"e.parquet": {"src": [0], "dst": [1], "price": pa.array([1]).cast(pa.decimal128(25, 2))}}, {},
     ["edge: 1 numbers (price)"]),
    ("vectors", {"e.parquet": {"src": [0], "dst": [1], "v": [[0.5, 1.5]]}}, {}, ["edge: 2 numbers (v[0], v[1])"]),
    ("vectors of several lengths", {"e.parquet": {"src": [0, 1], "dst": [1, 2], "v": [[1], [1, 2]]}}, {},
     ["error: column 'v' of e.parquet holds lists of different lengths"]),
    ("records", {"e.parquet": {"src": [0], "dst": [1], "r": [{"a": 1}]}}, {}, ["error: e.parquet is of type"]),
    ("bytes", {"e.parquet": {"src": [0], "dst": [1], "b": [b"x"]}}, {}, ["error: e.parquet is not UTF-8"]),
    ("nodes of another type", {"edges.parquet": {"src": ["a"], "dst": ["b"]}, "nodes.csv": "id,label\na,x\nb,y\n"}, {},
     ["2 classes (x, y)"]),
    ("a table of one row, many times", {"e.parquet": {"src": [0] * 3_000_000, "dst": [1] * 3_000_000}}, {},
     ["error: e.parquet holds 3,000,000 rows in"]),
]  # fmt: skip

TABLES = [*FORMS, *BROKEN, *FEATURES, *LABELS, *SPLITS, *GRAPHS, *PARQUET]
